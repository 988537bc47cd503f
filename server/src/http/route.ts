// What a route is: data. Everything the server does around a handler (authentication, limits, validation, error shape,
// OpenAPI, the authorization tests) is read from here, so a route cannot forget one of them.

import type { Static, TSchema } from 'typebox'
import type { AppId, KeyId, OrganizationId } from '../lib/ids.ts'
import type { Permission } from '../lib/permissions.ts'
import type { ErrorStyle } from './errors.ts'

/** What the kit needs to know of an app to let a request in. */
export type AppGate = {
  id: AppId
  organizationId: OrganizationId
  plan: 'free' | 'paid'
  /** Limits that differ from the plan's, by limit name. */
  limits: Record<string, number>
  keylessSdk: boolean
  identityRequired: boolean
  identityPublicKey: string | null
}

/** Who is calling. An SDK has no key; with identity verification it has proved whose device it is. */
export type Caller =
  | { kind: 'key'; keyId: KeyId }
  | { kind: 'sdk'; externalId: string | undefined }
  | { kind: 'organization'; keyId: KeyId; organizationId: OrganizationId }
  | { kind: 'anybody' }

/** Needed by every request of a key; with `when`, by those that ask for what `reason` names: "a preview as a user". */
export type AlsoNeeded = { permission: Permission; when?: { reason: string; applies: (call: Call) => boolean } }

export type RouteAccess =
  /**
   * No key: health, documentation, what SDKs ask before they are anybody. Where an answer costs a look into the database,
   * requests are counted per address, as those of SDKs are.
   */
  | { kind: 'public'; isCounted?: true }
  /** An organization key. When the path names an app (`:app_id`), or the query does, the organization must own it. */
  | { kind: 'organization'; appIn?: 'query' }
  /** An organization key, or the METRICS_TOKEN of the settings. */
  | { kind: 'metrics' }
  /** An app key with this permission, for the app named in the path, the query or the body. */
  | {
      kind: 'app'
      permission: Permission
      /** A second permission, for what the operation shows of users beyond its own subject. */
      also?: AlsoNeeded
      appIn: 'path' | 'query' | 'body'
      /** A request that names no app means the one that its key belongs to: old clients leave `app_id` out. */
      mayOmitApp?: true
      /** How a valid key of another app is answered. Missing and foreign apps look the same. */
      foreign?: 'not-found' | 'bad-key'
      /** A key of the organization that owns the app does as well. */
      orOrganization?: true
      /** May an SDK come in without a key? By default not. Asked with the decoded path and whether it brings a token. */
      keyless?: (params: Record<string, string>, hasToken: boolean) => boolean
      /**
       * What SDKs ask for without an identity token even where the app demands one, because they never bring one here. For
       * what is about no user, or where a user's name opens nothing.
       */
      isUnproven?: true
    }

/** What one request uses up. The names are those of the table in limits/rules.ts; a name that is not there does not start. */
export type RouteLimit = {
  rule: string
  /** Requests that share a counter although their paths differ (create and cancel message). By default: the operation. */
  counter?: string
  /**
   * The single things (users, subscriptions) this request is about, for limits that count per thing.
   * Limits are judged before schemas, so neither this nor `when` may trust the shape of the body or the query.
   */
  subjects?: (call: Call) => string[] | Promise<string[]>
  /** Whether the limit applies to this request at all. */
  when?: (call: Call) => boolean
}

export type Call<Params = Record<string, string>, Query = Record<string, unknown>, Body = unknown> = {
  /** The app the request is about; every query of an app route binds its id. Absent on routes that have none. */
  app: AppGate
  caller: Caller
  params: Params
  query: Query
  body: Body
  header(name: string): string | undefined
  /** The headers alone are asked for: whoever sent this has not seen the answer. */
  isHead: boolean
  /** The caller's address, behind trusted proxies too. */
  ip: string
  now: Date
  /** Aborted when the caller goes away: for answers that take long. */
  readonly signal: AbortSignal
}

/**
 * The body is sent as JSON, `{}` when it is undefined. With a `content-type` of its own among the headers (in lower case)
 * it must be a string or a buffer, sent as it is, or bytes that come bit by bit, of which the headers give the
 * `content-length`.
 */
export type Answer = { status: number; body: unknown; headers?: Record<string, string> }

export type Route = {
  /** Unique; the operationId of the OpenAPI description and the name of the endpoint's counters. */
  operation: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /**
   * With its parameters named, `/apps/:app_id/users`; served under `/` and under `/api/v1`. Parameters whose schema has the format
   * `uuid`, and `app_id`, are taken in any case and handed on in lower case.
   */
  path: string
  tag: string
  summary: string
  description?: string
  access: RouteAccess
  errors: ErrorStyle
  limits: RouteLimit[]
  params?: TSchema
  query?: TSchema
  /** A request body; `undefined` means that a body is neither needed nor read. */
  body?: TSchema
  /**
   * A form (`application/x-www-form-urlencoded`) instead of JSON. It is handed on as the text it came as, because that is what
   * services sign.
   */
  isForm?: true
  /**
   * A body of any type, handed on as the bytes it came as: what services sign, and what comes in one of several forms. Without
   * one it is undefined.
   */
  isRaw?: true
  /** No body is taken for an empty object. */
  mayOmitBody?: boolean
  /** Bytes; 1 MB unless told. */
  maxBodyBytes?: number
  /** Keys in the whole body; 2,000 unless told. */
  maxKeys?: number
  /** How deep lists and objects of the body may lie in each other; 32 unless told. */
  maxDepth?: number
  /** The body as the documentation describes it, where the domain reads it itself so that all its problems are told at once. */
  describedBody?: TSchema
  /** A body as somebody would send it, for the documentation. Without one it is made from the schema. */
  example?: unknown
  /** Schemas that bodies and answers refer to by `#/components/schemas/…`: those that contain themselves. */
  components?: Record<string, TSchema>
  /** Schemas of the successful answers, by status. Used for the documentation and checked in tests, not at run time. */
  answers: Record<number, TSchema>
  /** The content type of the successful answers in the documentation; JSON unless told. */
  produces?: string
  handle: (call: never) => Promise<Answer> | Answer
}

type Typed<Schema> = Schema extends TSchema ? Static<Schema> : Record<string, never>

/** Declare a route; the handler's types come from its schemas. */
export function route<
  Params extends TSchema | undefined = undefined,
  Query extends TSchema | undefined = undefined,
  Body extends TSchema | undefined = undefined,
>(
  declaration: Omit<Route, 'params' | 'query' | 'body' | 'handle'> & {
    params?: Params
    query?: Query
    body?: Body
    handle: (call: Call<Typed<Params>, Typed<Query>, Typed<Body>>) => Promise<Answer> | Answer
  },
): Route {
  return declaration as unknown as Route
}

// The two things the kit asks of the world, implemented by the `apps` domain and by `limits`.

export type KeyRecord = {
  keyId: KeyId
  kind: 'app' | 'org'
  organizationId: OrganizationId
  appId: AppId | null
  permissions: readonly string[]
  /** Networks (CIDR) the key may be used from; empty means everywhere. */
  ipAllowlist: readonly string[]
}

export type KeyLookup = {
  /** The key with this SHA-256, unless it is unknown or revoked. At most 4 s old; without a promise when it is at hand. */
  find(hash: Buffer): Promise<KeyRecord | undefined> | KeyRecord | undefined
  /** The app, at most 4 s old. */
  findApp(appId: AppId): Promise<AppGate | undefined> | AppGate | undefined
}

export type Charge = { rule: string; counter: string; subject?: string }

export type LimitCounter = {
  /** Take one from each counter, or from none. 0 when taken, else the whole seconds to wait before the next try. */
  take(app: AppGate, charges: Charge[]): Promise<number> | number
  has(rule: string): boolean
  /** Nothing is counted; then nobody needs to find out what a request would be charged for. */
  isOff(): boolean
}

// A route is data. Everything the server does around a handler (authentication, limits, validation, error shape,
// OpenAPI, the authorization tests) is derived from it, so a route cannot omit one of them.

import type { Static, TSchema } from 'typebox'
import type { AppId, KeyId, OrganizationId } from '../lib/ids.ts'
import type { Permission } from '../lib/permissions.ts'
import type { ErrorStyle } from './errors.ts'

/** What the HTTP layer needs to know about an app to admit a request. */
export type AppGate = {
  id: AppId
  organizationId: OrganizationId
  plan: 'free' | 'paid'
  /** Limits that differ from those of the plan, by limit name. */
  limits: Record<string, number>
  keylessSdk: boolean
  identityRequired: boolean
  identityPublicKey: string | null
}

/** Who is calling. An SDK has no key; with identity verification it has proved which user it acts for. */
export type Caller =
  | { kind: 'key'; keyId: KeyId }
  | { kind: 'sdk'; externalId: string | undefined }
  | { kind: 'organization'; keyId: KeyId; organizationId: OrganizationId }
  | { kind: 'anybody' }

/**
 * A second permission, needed by every request with a key. With `when`, only requests need it that ask for what
 * `reason` names, such as "a preview as a user".
 */
export type AlsoNeeded = { permission: Permission; when?: { reason: string; applies: (call: Call) => boolean } }

export type RouteAccess =
  /**
   * No key: health, documentation, what SDKs request before they have an identity. Where an answer costs a database
   * query, requests are counted per address, like those of SDKs.
   */
  | { kind: 'public'; isCounted?: true }
  /** An organization key. When the path (`:app_id`) or the query names an app, the organization must own it. */
  | { kind: 'organization'; appIn?: 'query' }
  /** An organization key, or the METRICS_TOKEN from the settings. */
  | { kind: 'metrics' }
  /** An app key with this permission, for the app named in the path, the query or the body. */
  | {
      kind: 'app'
      permission: Permission
      /** A second permission, for what the operation reveals about users beyond its own subject. */
      also?: AlsoNeeded
      appIn: 'path' | 'query' | 'body'
      /** A request without an app id means the app of its key: old clients omit `app_id`. */
      mayOmitApp?: true
      /** How a valid key of another app is answered. Missing and foreign apps get the same answer. */
      foreign?: 'not-found' | 'bad-key'
      /** A key of the organization that owns the app is accepted as well. */
      orOrganization?: true
      /**
       * Whether an SDK may call without a key; by default it may not. Receives the decoded path and whether there is a
       * token.
       */
      keyless?: (params: Record<string, string>, hasToken: boolean) => boolean
      /**
       * SDKs never send an identity token here, so none is required even if the app demands one. Only for requests that
       * concern no user, or where knowing a user's id grants access to nothing.
       */
      isUnproven?: true
    }

/**
 * A rate limit that the route counts against. Names are those of the table in limits/rules.ts; the server does not
 * start with an unknown name.
 */
export type RouteLimit = {
  rule: string
  /** A counter shared by requests with different paths (create and cancel message). Defaults to the operation. */
  counter?: string
  /**
   * The individual resources (users, subscriptions) that this request concerns, for limits that count per resource.
   * Limits are checked before schemas, so neither this nor `when` may trust the shape of the body or the query.
   */
  subjects?: (call: Call) => string[] | Promise<string[]>
  /** Whether the limit applies to this request. */
  when?: (call: Call) => boolean
}

export type Call<Params = Record<string, string>, Query = Record<string, unknown>, Body = unknown> = {
  /** The app that the request concerns; every query of an app route binds its id. Absent on routes without an app. */
  app: AppGate
  caller: Caller
  params: Params
  query: Query
  body: Body
  header(name: string): string | undefined
  /** Only the headers are requested, so the caller has not seen the content. */
  isHead: boolean
  /** The caller's address, also behind trusted proxies. */
  ip: string
  now: Date
  /** Aborted when the caller disconnects; for answers that take long. */
  readonly signal: AbortSignal
}

/**
 * The body is sent as JSON, and as `{}` when it is undefined. With a `content-type` (in lower case) among the headers,
 * it must be a string or a buffer, which is sent as it is, or a stream of bytes whose `content-length` is among the
 * headers.
 */
export type Answer = { status: number; body: unknown; headers?: Record<string, string> }

export type Route = {
  /** Unique; the operationId of the OpenAPI description, and the name of the endpoint's counters. */
  operation: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /**
   * The path with named parameters, such as `/apps/:app_id/users`; served under `/` and under `/api/v1`. `app_id` and
   * parameters whose schema has the format `uuid` are accepted in any letter case and passed on in lower case.
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
  /** Schema of the request body; `undefined` means that a body is neither needed nor read. */
  body?: TSchema
  /**
   * Accepts a form (`application/x-www-form-urlencoded`) instead of JSON. It is passed on as the original text, because
   * that is what services sign.
   */
  isForm?: true
  /**
   * Accepts a body of any type and passes on the original bytes: for signed bodies, and for bodies that have one of
   * several formats. Without a body, it is undefined.
   */
  isRaw?: true
  /** A missing body is treated as an empty object. */
  mayOmitBody?: boolean
  /** In bytes. Defaults to 1 MB. */
  maxBodyBytes?: number
  /** Maximum number of keys in the whole body. Defaults to 2,000. */
  maxKeys?: number
  /** How deeply lists and objects may be nested in the body. Defaults to 32. */
  maxDepth?: number
  /**
   * The schema shown in the documentation, for bodies that the domain validates itself in order to report all problems
   * at once.
   */
  describedBody?: TSchema
  /** A realistic body for the documentation. Without one, an example is generated from the schema. */
  example?: unknown
  /** Schemas that bodies and answers refer to by `#/components/schemas/…`, for recursive schemas. */
  components?: Record<string, TSchema>
  /**
   * Schemas of the successful answers, by status. They are used in the documentation and checked in tests, not at run
   * time.
   */
  answers: Record<number, TSchema>
  /** The content type of the successful answers in the documentation. Defaults to JSON. */
  produces?: string
  handle: (call: never) => Promise<Answer> | Answer
}

type Typed<Schema> = Schema extends TSchema ? Static<Schema> : Record<string, never>

/** Declares a route; the types of the handler come from its schemas. */
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

// The two dependencies of the HTTP layer, implemented by the `apps` domain and by `limits`.

export type KeyRecord = {
  keyId: KeyId
  kind: 'app' | 'org'
  organizationId: OrganizationId
  appId: AppId | null
  permissions: readonly string[]
  /** Networks (CIDR) from which the key may be used; empty means everywhere. */
  ipAllowlist: readonly string[]
}

export type KeyLookup = {
  /**
   * Finds the key with this SHA-256, unless it is unknown or revoked. At most 4 s old; returned without a promise when
   * it is cached.
   */
  find(hash: Buffer): Promise<KeyRecord | undefined> | KeyRecord | undefined
  /** Finds the app, at most 4 s old. */
  findApp(appId: AppId): Promise<AppGate | undefined> | AppGate | undefined
}

export type Charge = { rule: string; counter: string; subject?: string }

export type LimitCounter = {
  /**
   * Takes one from each counter, or from none. Returns 0 when taken, otherwise the whole seconds to wait before
   * retrying.
   */
  take(app: AppGate, charges: Charge[]): Promise<number> | number
  has(rule: string): boolean
  /** True when nothing is counted, so that callers need not work out the charges of a request. */
  isOff(): boolean
}

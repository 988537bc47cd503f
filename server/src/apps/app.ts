import type { AppGate } from '../http/route.ts'
import type { AppId, KeyId, OrganizationId } from '../lib/ids.ts'
import type { Permission } from '../lib/permissions.ts'

/** Who changed something, for the audit log; `ip` is where the request came from. */
export type Actor = { kind: 'key' | 'organization'; id: KeyId; ip?: string } | { kind: 'system' }
export const SYSTEM: Actor = { kind: 'system' }

/** What a key belongs to. */
export type KeyScope = { kind: 'app'; appId: AppId } | { kind: 'org'; organizationId: OrganizationId }

export type AllowlistMode = 'disabled' | 'explicit'

export type NewKey = {
  name: string
  /** What the key may do. Defaults to everything. Organization keys have no permissions: their kind decides. */
  permissions?: readonly Permission[]
  /** Addresses and networks (CIDR) the key may be used from; empty means everywhere. */
  ipAllowlist?: readonly string[]
  /** Whether the allowlist is checked. Defaults to `explicit` if it has entries. */
  ipAllowlistMode?: AllowlistMode
  /** A key chosen by the operator instead of a generated one. */
  key?: string
}

/** The only moment at which a key can be read. */
export type IssuedKey = { keyId: KeyId; key: string }

export type KeySummary = {
  id: KeyId
  name: string
  permissions: string[]
  ipAllowlist: string[]
  /** An empty allowlist excludes nobody, and is shown as disabled. */
  ipAllowlistMode: AllowlistMode
  createdAt: Date
  updatedAt: Date
  /** Accurate to a few seconds for uses on this server, to a minute for others; null if the key was never used. */
  lastUsedAt: Date | null
}

export type AppPlan = AppGate['plan']

export type AppSettings = {
  name: string
  plan: AppPlan
  limits: Record<string, number>
  keylessSdk: boolean
  identityRequired: boolean
  identityPublicKey: string | null
}

export type FirstOrganization = {
  organizationId: OrganizationId
  organizationKey: string
  appId: AppId
  appKey: string
}

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
  /** What the key may do; everything unless told. Organization keys have no permissions: their kind decides. */
  permissions?: readonly Permission[]
  /** Addresses and networks (CIDR) the key may be used from; empty means everywhere. */
  ipAllowlist?: readonly string[]
  /** Whether the list is looked at; it is, unless told otherwise. */
  ipAllowlistMode?: AllowlistMode
  /** A key chosen by the operator instead of a made one. */
  key?: string
}

/** The one moment at which a key can be read. */
export type IssuedKey = { keyId: KeyId; key: string }

export type KeySummary = {
  id: KeyId
  name: string
  permissions: string[]
  ipAllowlist: string[]
  /** A list that is empty keeps nobody out, and is told as disabled. */
  ipAllowlistMode: AllowlistMode
  createdAt: Date
  updatedAt: Date
  /** To within a few seconds on this server, a minute on others; null when it was never used. */
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

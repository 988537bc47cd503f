import type { AppGate } from '../http/route.ts'
import type { AppId, KeyId, OrganizationId } from '../lib/ids.ts'
import type { Permission } from '../lib/permissions.ts'

/** Who changed something, for the audit log. */
export type Actor = { kind: 'key' | 'organization'; id: KeyId } | { kind: 'system' }
export const SYSTEM: Actor = { kind: 'system' }

/** What a key belongs to. */
export type KeyScope = { kind: 'app'; appId: AppId } | { kind: 'org'; organizationId: OrganizationId }

export type NewKey = {
  name: string
  /** What the key may do; everything unless told. Organization keys have no permissions: their kind decides. */
  permissions?: readonly Permission[]
  /** Addresses and networks (CIDR) the key may be used from; empty means everywhere. */
  ipAllowlist?: readonly string[]
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
  createdAt: Date
  updatedAt: Date
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

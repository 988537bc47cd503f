// What the email operations depend on, assembled once.

import type { KeyObject } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { SecretBox } from '../lib/secrets.ts'
import type { Db } from '../storage/db.ts'
import { createRsaKeyPool, type RsaKeyPool } from './domains/rsa-key-pool.ts'

/** DNS queries. A missing record yields an empty list; the promise rejects when DNS gives no answer. */
export type EmailResolver = {
  txt(name: string): Promise<string[]>
  mx(name: string): Promise<string[]>
  cname(name: string): Promise<string[]>
  addresses(name: string): Promise<string[]>
}

/** A relay that is ready to use. Its password is in clear text, so it must not appear in any answer or log. */
export type EmailRelay = {
  host: string
  port: number
  tls: 'starttls' | 'implicit' | 'opportunistic' | 'none'
  auth?: { user: string; password: string } | undefined
  connections: number
  perSecond?: number | undefined
}

/** The operator's email settings. */
export type ServerEmail = {
  route: (EmailRelay & { isCatcher: boolean }) | 'direct' | undefined
  helo: string
}

export type EmailContext = {
  db: Db
  now: () => Date
  newId: NewId
  /** Seals private keys and passwords. */
  secrets: SecretBox
  resolver: EmailResolver
  serverEmail: ServerEmail
  /**
   * The base of links. `isPublic` means that the operator configured it, so that customers may name it in their DNS.
   */
  home: { url: string; isPublic: boolean }
  /** Whether an app may connect to an IP address, given as text. */
  mayReach(address: string): boolean
  /** Provides RSA key pairs for DKIM. */
  rsaKeys: RsaKeyPool
  /** Parsed private keys, by their sealed text. */
  openedKeys: Map<string, KeyObject>
}

export const createEmailContext = (parts: {
  db: Db
  clock: Clock
  newId: NewId
  secrets: SecretBox
  resolver: EmailResolver
  serverEmail: ServerEmail
  publicUrl: string | undefined
  port: number
  mayReach(address: string): boolean
  /** How many keys are kept in stock. Defaults to none. */
  spareRsaKeys?: number | undefined
}): EmailContext => ({
  db: parts.db,
  now: parts.clock.now,
  newId: parts.newId,
  secrets: parts.secrets,
  resolver: parts.resolver,
  serverEmail: parts.serverEmail,
  home: {
    url: (parts.publicUrl ?? `http://localhost:${parts.port}`).replace(/\/+$/, ''),
    isPublic: parts.publicUrl !== undefined,
  },
  mayReach: parts.mayReach,
  rsaKeys: createRsaKeyPool(parts.spareRsaKeys ?? 0),
  openedKeys: new Map(),
})

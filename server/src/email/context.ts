// What the operations on email are made of, put together once.

import type { KeyObject } from 'node:crypto'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { SecretBox } from '../lib/secrets.ts'
import type { Db } from '../storage/db.ts'
import { createRsaKeyPool, type RsaKeyPool } from './domains/rsa-key-pool.ts'

/** Questions to DNS. What is not there is an empty list; rejects when nobody could say. */
export type EmailResolver = {
  txt(name: string): Promise<string[]>
  mx(name: string): Promise<string[]>
  cname(name: string): Promise<string[]>
  addresses(name: string): Promise<string[]>
}

/** A relay that is ready to be used, its password in clear: no answer or log may hold it. */
export type EmailRelay = {
  host: string
  port: number
  tls: 'starttls' | 'implicit' | 'opportunistic' | 'none'
  auth?: { user: string; password: string } | undefined
  connections: number
  perSecond?: number | undefined
}

/** What the operator says about mail. */
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
  /** Where links lead; `isPublic` when the operator has said so, and others may name it in their DNS. */
  home: { url: string; isPublic: boolean }
  /** Whether an address, written as such, may be connected to for an app. */
  mayReach(address: string): boolean
  /** Keys for DKIM. */
  rsaKeys: RsaKeyPool
  /** Private keys that were opened, by their sealed text. */
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
  /** Made ahead once the stock is filled; none by default. */
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

// A sending domain: its name, its states and its keys.

import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { AppError, invalid } from '../../lib/errors.ts'

export const domainStates = ['pending', 'active', 'paused'] as const
export type DomainState = (typeof domainStates)[number]

/**
 * `check`: its records were verified. `force`: an operator decided. `catch` and `load`: mail was caught or events were
 * loaded, which does not permit real sending.
 */
export type ActivatedBy = 'check' | 'force' | 'catch' | 'load'

export const algorithms = ['rsa', 'ed25519'] as const
export type Algorithm = (typeof algorithms)[number]

/** As stored. The private half is sealed, and deleted when the key stops signing. */
export type StoredDkimKey = {
  selector: string
  algorithm: Algorithm
  /** The value of `p=` in the record. */
  public: string
  sealed: string | null
  /**
   * `next` is published but does not sign yet. `retired` no longer signs, but stays published until mail under way has
   * arrived.
   */
  state: 'active' | 'next' | 'retired'
  created_at: string
}

/** The result of checking one record. `unknown`: DNS gave no answer. */
export type RecordCheck = { state: 'ok' | 'missing' | 'wrong' | 'unknown'; found: string | null }
/** Keyed by `checkKey` in records.ts. */
export type RecordChecks = Record<string, RecordCheck>

export type EmailDomain = {
  domain: string
  state: DomainState
  activatedBy: ActivatedBy | null
  /** Null stands for bounce.<domain>. */
  returnPathHost: string | null
  /** Null stands for the server's own address. */
  trackingHost: string | null
  dkimKeys: StoredDkimKey[]
  checks: RecordChecks
  checkedAt: Date | null
  createdAt: Date
  updatedAt: Date
}

/** Per app. */
export const MAX_DOMAINS = 100

/** Whether the domain may be used for mail that really leaves the server. */
export const isTrusted = ({ state, activatedBy }: Pick<EmailDomain, 'state' | 'activatedBy'>) =>
  state === 'active' && (activatedBy === 'check' || activatedBy === 'force')

export const returnPathOf = ({ domain, returnPathHost }: Pick<EmailDomain, 'domain' | 'returnPathHost'>) =>
  returnPathHost ?? `bounce.${domain}`

export const keysInState = ({ dkimKeys }: Pick<EmailDomain, 'dkimKeys'>, state: StoredDkimKey['state']) =>
  dkimKeys.filter((key) => key.state === state)

const HOST = /^(?=.{1,253}$)([a-z0-9_]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/

/** Returns the name in lower-case ASCII, as used in DNS; undefined when it is not a valid host name. */
export function normalizeHost(text: string): string | undefined {
  const name = domainToASCII(text.trim().replace(/\.$/, '')).toLowerCase()
  return HOST.test(name) && isIP(name) === 0 ? name : undefined
}

export function readHost(field: string, text: string): string {
  const name = normalizeHost(text)
  if (name === undefined) throw invalid(`${field} must be the full name of a host, as news.example.com`, { field })
  return name
}

export const domainNotFound = () =>
  new AppError('not-found', { code: 'email-domain-0', title: 'Email domain not found' })
export const domainConflict = (title: string) => new AppError('conflict', { code: 'email-domain-1', title })

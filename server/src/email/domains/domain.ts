// What a sending domain is: its name, its states, its keys.

import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { AppError, invalid } from '../../lib/errors.ts'

export const domainStates = ['pending', 'active', 'paused'] as const
export type DomainState = (typeof domainStates)[number]

/** `check`: by its records. `force`: by an operator's word. `catch`, `load`: mail was caught or events loaded; that lets no mail out. */
export type ActivatedBy = 'check' | 'force' | 'catch' | 'load'

export const algorithms = ['rsa', 'ed25519'] as const
export type Algorithm = (typeof algorithms)[number]

/** As it is kept. The private half is sealed, and thrown away when the key signs no more. */
export type StoredDkimKey = {
  selector: string
  algorithm: Algorithm
  /** As the record has it behind `p=`. */
  public: string
  sealed: string | null
  /** `next` is published but does not sign yet; `retired` signs no more, and is published until mail under way has arrived. */
  state: 'active' | 'next' | 'retired'
  created_at: string
}

/** What was found of a record. `unknown`: DNS did not answer. */
export type RecordCheck = { state: 'ok' | 'missing' | 'wrong' | 'unknown'; found: string | null }
/** By the name of the record; see records.ts. */
export type RecordChecks = Record<string, RecordCheck>

export type EmailDomain = {
  domain: string
  state: DomainState
  activatedBy: ActivatedBy | null
  /** Null: bounce.<domain>. */
  returnPathHost: string | null
  /** Null: the server's own address. */
  trackingHost: string | null
  dkimKeys: StoredDkimKey[]
  checks: RecordChecks
  checkedAt: Date | null
  createdAt: Date
  updatedAt: Date
}

/** How many domains an app may have. */
export const MAX_DOMAINS = 100

/** Active for mail that really goes out. */
export const isTrusted = ({ state, activatedBy }: Pick<EmailDomain, 'state' | 'activatedBy'>) =>
  state === 'active' && (activatedBy === 'check' || activatedBy === 'force')

export const returnPathOf = ({ domain, returnPathHost }: Pick<EmailDomain, 'domain' | 'returnPathHost'>) =>
  returnPathHost ?? `bounce.${domain}`

export const keysInState = ({ dkimKeys }: Pick<EmailDomain, 'dkimKeys'>, state: StoredDkimKey['state']) =>
  dkimKeys.filter((key) => key.state === state)

const HOST = /^(?=.{1,253}$)([a-z0-9_]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/

/** In lower case and in ASCII, as DNS has it; undefined when it can be no name of a host. */
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

// Validates the SMS provider of a request: what cannot work is refused at once, by the name of its field.

import { AppError, invalid, type Problem } from '../../lib/errors.ts'
import { MASK } from '../schema.ts'
import type { SmsBody } from './schema.ts'

type OptWords = { opt_out_words: string[]; opt_in_words: string[] }
type Twilio = OptWords & {
  kind: 'twilio'
  account_sid: string
  messaging_service_sid: string | null
  from: string | null
}
type Smpp = OptWords & {
  kind: 'smpp'
  host: string
  port: number
  tls: boolean
  system_id: string
  system_type: string | null
  from: string
  source_addr_ton: number | null
  source_addr_npi: number | null
}

/** As it is stored, with the names of the API and without its secret. */
export type SmsSettings = Twilio | Smpp

const SENDER = /^(\+\d{7,15}|\d{3,15}|[A-Za-z0-9 ]{1,11})$/
const FORMS = {
  account_sid: [/^[A-Za-z0-9]{2,64}$/, 'the id of an account, as ACxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'],
  messaging_service_sid: [/^[A-Za-z0-9]{2,64}$/, 'the id of a messaging service'],
  from: [SENDER, 'a number in E.164 form, a short code, or a name of at most 11 letters and digits'],
  host: [/^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?\.?$/, 'the name or the address of a host'],
  system_id: [/^[\x21-\x7e]{1,15}$/, 'at most 15 letters, digits and signs'],
  system_type: [/^[\x21-\x7e]{1,12}$/, 'at most 12 letters, digits and signs'],
} as const satisfies Record<string, readonly [RegExp, string]>

/** The form in which words are compared: upper case, without surrounding punctuation. */
export const bareWord = (text: string) => text.replace(/^[\s\p{P}]+|[\s\p{P}]+$/gu, '').toUpperCase()

/** Throws all problems at once. */
export function readSms(body: SmsBody): { settings: SmsSettings; secret: string | undefined } {
  const problems: Problem[] = []
  const refuse = (title: string) => problems.push(...invalid(title).problems)
  const optional = (name: keyof typeof FORMS): string | null => {
    const given = body[name] || null
    const [form, demand] = FORMS[name]
    if (given !== null && !form.test(given)) refuse(`${name} must be ${demand}`)
    return given
  }
  const required = (name: keyof typeof FORMS): string => {
    const given = optional(name)
    if (given === null) refuse(`${name} is required with kind "${body.kind}"`)
    return given ?? ''
  }
  const words = (name: 'opt_out_words' | 'opt_in_words') => {
    const bare = (body[name] ?? []).map(bareWord)
    if (bare.includes('')) refuse(`${name} must hold words`)
    return [...new Set(bare)]
  }

  const both: OptWords = { opt_out_words: words('opt_out_words'), opt_in_words: words('opt_in_words') }
  const settings: SmsSettings = body.kind === 'twilio' ? readTwilio(both) : readSmpp(both)
  const given = (body.kind === 'twilio' ? body.auth_token : body.password) || MASK
  if (!/^[\x21-\x7e]+$/.test(given)) refuse(`${secretName(body.kind)} must consist of letters, digits and signs`)
  if (problems.length > 0) throw new AppError('invalid', ...problems)
  return { settings, secret: given === MASK ? undefined : given }

  function readTwilio(words: OptWords): Twilio {
    const from = optional('from')
    const messaging_service_sid = optional('messaging_service_sid')
    if (from === null && messaging_service_sid === null)
      refuse('from or messaging_service_sid is required with kind "twilio"')
    return { kind: 'twilio', account_sid: required('account_sid'), messaging_service_sid, from, ...words }
  }

  function readSmpp(words: OptWords): Smpp {
    const tls = body.tls ?? false
    const [ton, npi] = [body.source_addr_ton ?? null, body.source_addr_npi ?? null]
    if ((ton === null) !== (npi === null)) refuse('source_addr_ton and source_addr_npi must be given together')
    return {
      kind: 'smpp',
      host: required('host'),
      port: body.port ?? (tls ? 3550 : 2775),
      tls,
      system_id: required('system_id'),
      system_type: optional('system_type'),
      from: required('from'),
      source_addr_ton: ton,
      source_addr_npi: npi,
      ...words,
    }
  }
}

export const secretName = (kind: SmsSettings['kind']) => (kind === 'twilio' ? 'auth_token' : 'password')

/**
 * Whether a secret that the request leaves out may be kept. It stays with the account it was given for: sent to another
 * address, it would be disclosed.
 */
export function isSameAccount(a: SmsSettings, b: SmsSettings): boolean {
  if (a.kind === 'twilio') return b.kind === 'twilio' && a.account_sid === b.account_sid
  return b.kind === 'smpp' && (['host', 'port', 'tls', 'system_id'] as const).every((name) => a[name] === b[name])
}

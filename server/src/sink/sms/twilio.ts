// A stand-in for Twilio: the same address, authorization, form and errors.

import { randomBytes } from 'node:crypto'
import { type ChannelService, RETRY_AFTER, type SinkAnswer, type SinkRequest } from '../service.ts'

export type TwilioReceived = { sid: string; form: URLSearchParams; messageId: string | undefined }

export type TwilioSinkSettings = {
  /**
   * The only account that is accepted. Without it, all accounts are. `user` is the account's SID, or the SID of an API
   * key.
   */
  account?: { accountSid: string; password: string; user?: string | undefined } | undefined
  onReceived(received: TwilioReceived): void
}

export const TWILIO_HOST = 'api.twilio.com'
const PATH = /^\/2010-04-01\/Accounts\/([^/]+)\/Messages\.json$/

export const isForTwilio = ({ path }: SinkRequest) => path.startsWith('/2010-04-01/')

/** In Twilio's format. As in Twilio's answers, the message repeats the number. */
export const twilioRefusal = (status: number, code: number, headers: Record<string, string> = {}): SinkAnswer => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify({
    code,
    message: `The 'To' number +15005550009 is not valid (${code})`,
    more_info: `https://www.twilio.com/docs/errors/${code}`,
    status,
  }),
})

const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

export function twilioService({ account, onReceived }: TwilioSinkSettings): ChannelService {
  const expected = account && basic(account.user ?? account.accountSid, account.password)
  return {
    channel: 'sms',
    addressOf: ({ body }) => new URLSearchParams(body.toString()).get('To') ?? '',
    check({ method, path, headers, body }) {
      const { authorization = '' } = headers
      if (expected ? authorization !== expected : !/^Basic .{4,}/.test(authorization)) return twilioRefusal(401, 20003)
      const [, accountSid] = PATH.exec(path) ?? []
      if (method !== 'POST' || accountSid === undefined || (account?.accountSid ?? accountSid) !== accountSid)
        return twilioRefusal(404, 20404)
      if (!headers['content-type']?.startsWith('application/x-www-form-urlencoded')) return twilioRefusal(400, 21604)
      const form = new URLSearchParams(body.toString())
      if (!/^\+\d{7,15}$/.test(form.get('To') ?? '')) return twilioRefusal(400, 21211)
      if (!form.has('From') && !form.has('MessagingServiceSid')) return twilioRefusal(400, 21603)
      return form.has('Body') || form.has('MediaUrl') ? undefined : twilioRefusal(400, 21602)
    },
    accept({ path, headers, body }) {
      const form = new URLSearchParams(body.toString())
      const sid = `SM${randomBytes(16).toString('hex')}`
      onReceived({ sid, form, messageId: headers['x-message-id'] })
      return {
        status: 201,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(resourceOf(sid, PATH.exec(path)?.[1] ?? '', form)),
      }
    },
    refusals: {
      unavailable: () => twilioRefusal(503, 20503),
      rate_limited: () => twilioRefusal(429, 20429, RETRY_AFTER),
      gone: () => twilioRefusal(400, 21610),
    },
  }
}

const resourceOf = (sid: string, accountSid: string, form: URLSearchParams) => ({
  sid,
  account_sid: accountSid,
  to: form.get('To'),
  from: form.get('From'),
  messaging_service_sid: form.get('MessagingServiceSid'),
  body: form.get('Body') ?? '',
  status: 'queued',
  error_code: null,
  error_message: null,
  num_media: String(form.getAll('MediaUrl').length),
  direction: 'outbound-api',
})

// A service that answers texts as Twilio does: the same address, authorization, form and errors. Which numbers fail, and how,
// is told at the start; all others are taken.

import { type Answer, type HttpSink, type HttpSinkSettings, type Received, startHttpSink } from './http.ts'

export type TwilioSinkSettings = HttpSinkSettings & {
  accountSid: string
  password: string
  user?: string
  fates?: Readonly<Record<string, Answer | Promise<Answer>>>
}

export type TwilioSink = HttpSink & { texts: { sid: string; form: URLSearchParams }[] }

/** As Twilio words it; a message that repeats the number, as theirs do. */
export const twilioError = (status: number, code: number, headers: Record<string, string> = {}): Answer => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify({
    code,
    message: `The 'To' number +15005550009 is not valid (${code})`,
    more_info: `https://www.twilio.com/docs/errors/${code}`,
    status,
  }),
})

export async function startTwilioSink(settings: TwilioSinkSettings): Promise<TwilioSink> {
  const { accountSid, password, user = accountSid, fates = {} } = settings
  const expected = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  const texts: TwilioSink['texts'] = []
  const sink = await startHttpSink(({ method, path, headers, body }: Received) => {
    if (headers.authorization !== expected) return twilioError(401, 20003)
    if (method !== 'POST' || path !== `/2010-04-01/Accounts/${accountSid}/Messages.json`) return twilioError(404, 20404)
    if (!headers['content-type']?.startsWith('application/x-www-form-urlencoded')) return twilioError(400, 21604)
    const form = new URLSearchParams(body)
    const to = form.get('To') ?? ''
    if (fates[to]) return fates[to]
    if (!/^\+\d{7,15}$/.test(to)) return twilioError(400, 21211)
    if (!form.has('From') && !form.has('MessagingServiceSid')) return twilioError(400, 21603)
    if (!form.has('Body') && !form.has('MediaUrl')) return twilioError(400, 21602)
    const sid = `SM${String(texts.length + 1).padStart(32, '0')}`
    texts.push({ sid, form })
    return {
      status: 201,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        sid,
        account_sid: accountSid,
        to,
        from: form.get('From'),
        messaging_service_sid: form.get('MessagingServiceSid'),
        body: form.get('Body') ?? '',
        status: 'queued',
        error_code: null,
        error_message: null,
        num_media: String(form.getAll('MediaUrl').length),
        direction: 'outbound-api',
      }),
    }
  }, settings)
  return { ...sink, texts }
}

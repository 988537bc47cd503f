import { openOutbound } from '../../../src/channels/outbound.ts'
import type { SmsItem } from '../../../src/channels/sms/message.ts'
import { openTwilio } from '../../../src/channels/sms/twilio.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { SinkFailure } from '../../../src/sink/service.ts'
import { twilioRefusal } from '../../../src/sink/sms/twilio.ts'
import { startTwilioSink } from '../../sinks/texts.ts'
import type { StartOptions, Subject, Troubles } from '../contract.ts'
import { httpTroubles } from './http.ts'
import { aNumber, someNumbers } from './numbers.ts'

const account = { accountSid: 'ACmarker', password: 'password-marker' }

export const troubles: Troubles<SinkFailure> = {
  ...httpTroubles,
  refused: twilioRefusal(400, 21612),
  gone: twilioRefusal(400, 21610),
}

export async function start({ deadlineMs }: StartOptions): Promise<Subject<SmsItem, SinkFailure>> {
  const provider = await startTwilioSink(account)
  const outbound = openOutbound({ route: provider.route, timeoutMs: deadlineMs })
  const item = (changes: Partial<SmsItem> = {}): SmsItem => ({ to: aNumber(), text: 'text-marker', ...changes })
  return {
    provider,
    channel: openTwilio({ outbound, clock: systemClock(), from: '+15005550100', ...account }),
    close: () => outbound.close(),
    item,
    addressOf: ({ to }) => to,
    secretsOf: ({ to }) => ['marker', '127.0.0.1', ...someNumbers(to)],
    broken: () => [item({ to: '' }), item({ to: 'nobody' }), item({ to: '+1 500\r\nx: y' }), item({ text: '' })],
  }
}

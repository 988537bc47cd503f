import { openOutbound } from '../../src/channels/outbound.ts'
import type { SmsItem } from '../../src/channels/sms/message.ts'
import { openTwilio } from '../../src/channels/sms/twilio.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { type Answer, startHttpSink } from '../sinks/http.ts'
import { startTwilioSink, twilioError } from '../sinks/twilio.ts'
import { NUMBERS, testContract } from './contract-by-fate.ts'

const account = { accountSid: 'ACmarker', password: 'password-marker' }
const clock = systemClock()
const openTo = (baseUrl: string) => {
  const outbound = openOutbound({ allow: ['127.0.0.1'], allowHttp: true })
  return { outbound, channel: openTwilio({ outbound, clock, baseUrl, from: '+15005550100', ...account }) }
}
const itemFor = (to: string): SmsItem => ({ to, text: 'text-marker' })

testContract<SmsItem>('the Twilio channel', {
  async open() {
    const { promise: held, resolve: release } = Promise.withResolvers<Answer>()
    const sink = await startTwilioSink({
      ...account,
      fates: {
        [NUMBERS.busy]: twilioError(503, 20503),
        [NUMBERS.refused]: twilioError(400, 21612),
        [NUMBERS.gone]: twilioError(400, 21610),
        [NUMBERS.lost]: 'reset',
        [NUMBERS.held]: held,
      },
    })
    const { channel, outbound } = openTo(sink.url)
    return {
      channel,
      item: (fate) => itemFor(NUMBERS[fate]),
      arrived: (fate) =>
        sink.received.filter(({ body }) => new URLSearchParams(body).get('To') === NUMBERS[fate]).length,
      release: () => release({ status: 201, body: '{"sid":"SM1","error_code":null}' }),
      markers: ['marker', '5005550', '127.0.0.1'],
      async stop() {
        await channel.close()
        await outbound.close()
        await sink.stop()
      },
    }
  },
  async openToNobody() {
    const { url, stop } = await startHttpSink(() => 'silent')
    await stop()
    return { channel: openTo(url).channel, item: itemFor(NUMBERS.taken) }
  },
  strange: [
    itemFor(''),
    itemFor('nobody'),
    itemFor('+1 500\r\nx: y'),
    { to: NUMBERS.taken, text: '' },
    { to: NUMBERS.taken, text: '\ud800' },
  ],
})

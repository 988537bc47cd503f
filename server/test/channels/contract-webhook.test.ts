import { openOutbound } from '../../src/channels/outbound.ts'
import { newWebhookSecret } from '../../src/channels/webhook/sign.ts'
import { openWebhooks, type WebhookItem } from '../../src/channels/webhook/webhook.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { type Answer, startHttpSink } from '../sinks/http.ts'
import { type Fate, testContract } from './contract-by-fate.ts'

const secret = newWebhookSecret()
const clock = systemClock()
const open = () => openOutbound({ allow: ['127.0.0.1'], allowHttp: true })
const itemFor = (url: string): WebhookItem => ({ url, id: 'msg_1', body: '{"marker":"content"}', secrets: [secret] })

testContract<WebhookItem>('the webhook channel', {
  async open() {
    const { promise: held, resolve: release } = Promise.withResolvers<Answer>()
    const answers: Record<Fate, Answer | Promise<Answer>> = {
      taken: { status: 204 },
      busy: { status: 503, body: 'marker: answer' },
      refused: { status: 400, body: 'marker: answer' },
      gone: { status: 410 },
      lost: 'reset',
      held,
    }
    const sink = await startHttpSink(({ path }) => answers[path.split('/')[2] as Fate])
    const outbound = open()
    const channel = openWebhooks({ outbound, clock })
    return {
      channel,
      item: (fate) => itemFor(`${sink.url}/marker/${fate}`),
      arrived: (fate) => sink.received.filter(({ path }) => path.endsWith(fate)).length,
      release: () => release({ status: 200 }),
      markers: [secret, 'marker', '127.0.0.1', 'msg_1'],
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
    return { channel: openWebhooks({ outbound: open(), clock }), item: itemFor(url) }
  },
  strange: [
    itemFor('nonsense marker'),
    itemFor('http://10.0.0.1/marker'),
    { ...itemFor('https://127.0.0.1/'), headers: { 'bad name': 'x' } },
    { ...itemFor('https://127.0.0.1/'), headers: { 'x-a': 'b\r\nc: d' } },
    { ...itemFor('https://127.0.0.1/'), headers: { 'Webhook-Signature': 'v1,mine' } },
    { ...itemFor('https://127.0.0.1/'), headers: { 'Transfer-Encoding': 'chunked' } },
    { ...itemFor('https://127.0.0.1/'), secrets: [] },
    { ...itemFor('https://127.0.0.1/'), secrets: [secret, 'marker'] },
    { ...itemFor('https://127.0.0.1/'), id: 'a.b\r\n' },
  ],
})

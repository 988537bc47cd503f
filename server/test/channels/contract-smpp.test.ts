import { openOutbound } from '../../src/channels/outbound.ts'
import type { SmsItem } from '../../src/channels/sms/message.ts'
import { openSmpp } from '../../src/channels/sms/smpp.ts'
import { createLog } from '../../src/lib/log.ts'
import { type SmppFate, startSmppSink } from '../sinks/smpp.ts'
import { NUMBERS, testContract } from './contract-by-fate.ts'

const account = { systemId: 'marker-id', password: 'marker-pw' }
const itemFor = (to: string): SmsItem => ({ to, text: 'marker text' })

function openTo(port: number) {
  let logged = ''
  const outbound = openOutbound({ allow: ['127.0.0.1'] })
  const log = createLog('debug', { write: (line) => (logged += line) })
  const channel = openSmpp({
    outbound,
    log,
    host: '127.0.0.1',
    port,
    ...account,
    from: '+15005550100',
    onReceipt: async () => {},
    onText: async () => {},
    answerMs: 2_000,
    pausesMs: { first: 5, longest: 50 },
  })
  return { channel, logged: () => logged }
}

testContract<SmsItem>('the SMPP channel', {
  async open() {
    const { promise: held, resolve: release } = Promise.withResolvers<0>()
    const fates: Record<string, SmppFate> = {
      [NUMBERS.busy]: 0x08,
      [NUMBERS.refused]: 0x45,
      [NUMBERS.gone]: 0x0b,
      [NUMBERS.lost]: 'hang-up',
      [NUMBERS.held]: held,
    }
    const sink = await startSmppSink({ ...account, fates })
    const { channel, logged } = openTo(sink.port)
    return {
      channel,
      item: (fate) => itemFor(NUMBERS[fate]),
      arrived: (fate) => sink.submitted.filter((pdu) => `+${pdu.destination_addr}` === NUMBERS[fate]).length,
      release: () => release(0),
      markers: ['marker', '5005550', '127.0.0.1'],
      logged,
      async stop() {
        await channel.close()
        await sink.stop()
      },
    }
  },
  async openToNobody() {
    const { port, stop } = await startSmppSink(account)
    await stop()
    return { channel: openTo(port).channel, item: itemFor(NUMBERS.taken) }
  },
  strange: [
    itemFor(''),
    itemFor('nobody'),
    itemFor('+1500555\x001'),
    itemFor('+15005550001234567890'),
    { to: NUMBERS.taken, text: '' },
    { to: NUMBERS.taken, text: '\ud800' },
    { to: NUMBERS.taken, text: 'ж'.repeat(20_000) },
    { to: NUMBERS.taken, text: 'a', from: 'marker\0x' },
    { to: NUMBERS.taken, text: 'a', mediaUrls: ['https://marker.example/a.png'] },
  ],
})

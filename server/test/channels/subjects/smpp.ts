import { openOutbound } from '../../../src/channels/outbound.ts'
import type { SmsItem } from '../../../src/channels/sms/message.ts'
import { openSmpp } from '../../../src/channels/sms/smpp.ts'
import { createLog } from '../../../src/lib/log.ts'
import type { SmppVerdict } from '../../../src/sink/sms/smpp.ts'
import { startSmppSink } from '../../sinks/texts.ts'
import type { StartOptions, Subject, Troubles } from '../contract.ts'
import { aNumber, someNumbers } from './numbers.ts'

const account = { systemId: 'marker-id', password: 'marker-pw' }

export const troubles: Troubles<SmppVerdict> = {
  busy: 0x08,
  refused: 0x45,
  gone: 0x0b,
  lost: ['cut', 'hang', 'garbage'],
  noise: () => [0x08, 0x0a, 0x0b, 0x14, 0x45, 0x58, 0x65, 0x401],
}

export async function start({ deadlineMs }: StartOptions): Promise<Subject<SmsItem, SmppVerdict>> {
  const provider = await startSmppSink(account)
  let logged = ''
  const outbound = openOutbound({ allow: ['127.0.0.1'] })
  const channel = openSmpp({
    outbound,
    log: createLog('debug', { write: (line) => (logged += line) }),
    host: '127.0.0.1',
    port: provider.port,
    ...account,
    from: '+15005550100',
    onReceipt: async () => {},
    onText: async () => {},
    answerMs: deadlineMs,
    pausesMs: { first: 5, longest: 50 },
  })
  const item = (changes: Partial<SmsItem> = {}): SmsItem => ({ to: aNumber(), text: 'marker text', ...changes })
  return {
    provider,
    channel,
    close: () => outbound.close(),
    item,
    addressOf: ({ to }) => to,
    secretsOf: ({ to }) => ['marker', '127.0.0.1', ...someNumbers(to)],
    broken: () => [
      item({ to: '' }),
      item({ to: 'nobody' }),
      item({ to: '+1500555\x001' }),
      item({ to: '+15005550001234567890' }),
      item({ text: '' }),
      item({ text: 'ж'.repeat(20_000) }),
      item({ from: 'marker\0x' }),
      item({ mediaUrls: ['https://marker.example/a.png'] }),
    ],
    logged: () => logged,
  }
}

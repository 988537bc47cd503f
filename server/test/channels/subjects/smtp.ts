import { createDial } from '../../../src/channels/dial.ts'
import { openDirectChannel } from '../../../src/channels/email/direct.ts'
import type { EmailItem } from '../../../src/channels/email/message.ts'
import { openRelayChannel } from '../../../src/channels/email/relay.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { type MailTrouble, startMailSink } from '../../sinks/mail.ts'
import type { StartOptions, Subject, Troubles } from '../contract.ts'
import { aMail, CONTENT } from './mail.ts'

const reply = (at: MailTrouble['at'], say: string): MailTrouble => ({ at, fault: { say } })

export const troubles: Troubles<MailTrouble> = {
  busy: reply('rcpt', '450 4.2.1 mailbox busy'),
  refused: reply('taken', '554 5.6.0 not in this form'),
  gone: reply('rcpt', '550 5.1.1 no such mailbox'),
  lost: [
    { at: 'taken', fault: 'cut' },
    { at: 'taken', fault: 'hang' },
    { at: 'taken', fault: 'trickle' },
    { at: 'taken', fault: 'garbage' },
  ],
  noise: (secrets) => [
    reply('rcpt', '450 4.2.0 later'),
    reply('rcpt', '550 no'),
    reply('data', '554 5.3.0 no'),
    reply('taken', '552 5.2.2 full'),
    reply('rcpt', '999 what'),
    reply('rcpt', '550 5.0.0'),
    reply('rcpt', `550-5.7.1 ${secrets}\r\n550 5.7.1 ${secrets}`),
  ],
}

const auth = { user: 'user-marker', password: 'password-marker' }

const broken = (): EmailItem[] => [
  aMail({ to: '' }),
  aMail({ to: 'nobody' }),
  aMail({ to: 'a@b.example>\r\nRCPT TO:<marker@c.example' }),
  aMail({ to: 'a@marker..example' }),
  aMail({ envelopeFrom: 'marker\r\nDATA' }),
  aMail({ reference: 'marker\r\nX: y' }),
  aMail({ messageIdHeader: '<marker>\r\nX: y' }),
  aMail({ bcc: ['marker'] }),
  aMail({ content: { ...CONTENT, from: { address: 'marker' } } }),
  aMail({ content: { ...CONTENT, headers: [['marker\r\nX', ['y']]] } }),
  aMail({ content: { ...CONTENT, headers: [['Bcc', ['marker@example.com']]] } }),
]

const secretsOf = ({ to, reference }: EmailItem) => ['marker', '127.0.0.1', reference, ...(to === '' ? [] : [to])]

export async function startRelay({ deadlineMs }: StartOptions): Promise<Subject<EmailItem, MailTrouble>> {
  const provider = await startMailSink({ name: 'relay.example.com', auth })
  const connect = { 'smtp://relay.example.com:587': { host: '127.0.0.1', port: provider.port } }
  const channel = openRelayChannel({
    dial: createDial({ route: { ...provider.route, connect } }),
    host: 'relay.example.com',
    port: 587,
    tls: 'starttls',
    auth,
    helo: 'carillon.example.com',
    clock: systemClock(),
    connections: 5,
    answerMs: deadlineMs,
    takenMs: deadlineMs,
    awayMs: 0,
  })
  return { provider, channel, item: aMail, addressOf: ({ to }) => to, secretsOf, broken }
}

export async function startDirect({ deadlineMs }: StartOptions): Promise<Subject<EmailItem, MailTrouble>> {
  const provider = await startMailSink({ name: 'another-name.example' })
  const connect = { 'smtp://mx.recipients.example:25': { host: '127.0.0.1', port: provider.port } }
  const channel = openDirectChannel({
    dial: createDial({ route: { connect } }),
    resolveMx: async (domain) => [{ exchange: `mx.${domain}`, priority: 10 }],
    helo: 'carillon.example.com',
    clock: systemClock(),
    connectionsPerHost: 5,
    answerMs: deadlineMs,
    takenMs: deadlineMs,
    awayMs: 0,
  })
  return { provider, channel, item: aMail, addressOf: ({ to }) => to, secretsOf, broken }
}

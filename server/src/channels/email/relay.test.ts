import { hash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { aMail, CONTENT } from '../../../test/channels/subjects/mail.ts'
import { ANYBODY, type MailSink, type MailSinkSettings, startMailSink } from '../../../test/sinks/mail.ts'
import { systemClock, virtualClock } from '../../lib/clock.ts'
import { certificateFor } from '../../sink/certificate.ts'
import type { SmtpFault, SmtpStage } from '../../sink/email/smtp.ts'
import type { ChannelOutcome, TrafficSource } from '../channel.ts'
import { createDial } from '../dial.ts'
import type { EmailItem } from './message.ts'
import { encodeBase64 } from './mime/base64.ts'
import { buildMessage } from './mime/build-message.ts'
import { openRelayChannel, type RelayChannelSettings } from './relay.ts'

const NAME = 'relay.example.com'
const auth = { user: 'me', password: 'secret' }

function relayTo(port: number, changes: Partial<RelayChannelSettings> = {}, ca?: string) {
  const at = { host: '127.0.0.1', port }
  const connect = { [`smtp://${NAME}:587`]: at, [`smtps://${NAME}:465`]: at }
  const channel = openRelayChannel({
    dial: createDial({ route: { ca, connect } }),
    host: NAME,
    port: 587,
    tls: 'none',
    helo: 'carillon.example.com',
    clock: systemClock(),
    connections: 1,
    answerMs: 1_000,
    takenMs: 1_000,
    awayMs: 0,
    ...changes,
  })
  onTestFinished(() => channel.close())
  return {
    channel,
    send: async (...items: EmailItem[]) => channel.send(items),
    sendOne: async (item = aMail()) => (await channel.send([item]))[0] as ChannelOutcome,
  }
}

async function started(settings: MailSinkSettings = {}, changes: Partial<RelayChannelSettings> = {}) {
  const sink = await startMailSink(settings)
  onTestFinished(() => sink.close())
  return { sink, ...relayTo(sink.port, changes, sink.route.ca) }
}

const hashOf = (bytes: Buffer) => hash('sha256', bytes)

const aFile = (size: number) => ({
  name: 'a.bin',
  contentType: 'application/octet-stream',
  encoded: encodeBase64(randomBytes(size)),
})

const say = (text: string): SmtpFault => ({ say: text })

describe('a connection that goes wrong', () => {
  const before: [SmtpStage, SmtpFault, Partial<ChannelOutcome>][] = [
    ['connect', 'cut', { kind: 'retry', pausesProvider: true }],
    ['connect', 'hang', { kind: 'retry', reason: 'timeout', pausesProvider: true }],
    ['connect', say('421 4.3.2 busy'), { kind: 'retry', pausesProvider: true }],
    ['connect', say('554 5.7.1 go away'), { kind: 'misconfigured' }],
    ['hello', 'cut', { kind: 'retry', pausesProvider: true }],
    ['hello', say('421 busy'), { kind: 'retry', pausesProvider: true }],
    ['mail', 'cut', { kind: 'retry', reason: 'connection lost' }],
    ['mail', 'hang', { kind: 'retry', reason: 'timeout' }],
    ['mail', say('451 4.3.0 later'), { kind: 'retry' }],
    ['mail', say('421 4.7.0 later'), { kind: 'retry' }],
    ['mail', say('550 5.7.1 not you'), { kind: 'misconfigured', reason: 'sender refused' }],
    ['mail', say('552 5.3.4 too large'), { kind: 'failed', reason: 'message too large' }],
    ['mail', say('354 what'), { kind: 'retry', reason: 'answer not understood' }],
    ['rcpt', 'cut', { kind: 'retry', reason: 'connection lost' }],
    ['rcpt', 'hang', { kind: 'retry', reason: 'timeout' }],
    ['rcpt', say('450 4.2.1 busy'), { kind: 'retry', reason: 'status 450' }],
    ['rcpt', say('421 4.7.0 slow down'), { kind: 'retry', reason: 'slow down' }],
    ['rcpt', say('452 4.2.2 full'), { kind: 'retry', reason: 'mailbox_full' }],
    ['rcpt', say('550 5.1.1 nobody'), { kind: 'gone', reason: 'hard_bounce' }],
    ['rcpt', say('550-5.1.1 nobody\r\n550 5.1.1 here'), { kind: 'gone', reason: 'hard_bounce' }],
    ['rcpt', say('552 5.2.2 full'), { kind: 'failed', reason: 'mailbox_full' }],
    ['rcpt', say('550 5.7.1 spam'), { kind: 'failed', reason: 'blocked' }],
    ['rcpt', say('nonsense'), { kind: 'retry', reason: 'answer not understood' }],
    ['rcpt', say(`550 ${'x'.repeat(5_000)}`), { kind: 'retry', reason: 'answer not understood' }],
    ['rcpt', say('550-a\r\n'.repeat(200).trimEnd()), { kind: 'retry', reason: 'answer not understood' }],
    ['data', 'cut', { kind: 'retry', reason: 'connection lost' }],
    ['data', 'hang', { kind: 'retry', reason: 'timeout' }],
    ['data', say('451 4.3.0 later'), { kind: 'retry' }],
    ['data', say('554 5.6.0 no'), { kind: 'failed', reason: 'soft_bounce' }],
    ['message', 'cut', { kind: 'unknown' }],
    ['taken', say('451 4.3.0 later'), { kind: 'retry' }],
    ['taken', say('550 5.7.1 spam'), { kind: 'failed', reason: 'blocked' }],
    ['taken', say('550 5.1.1 nobody'), { kind: 'gone' }],
    ['taken', say('250 2.0.0 Ok: queued as 4F2A1B'), { kind: 'sent', id: '4F2A1B' }],
    ['taken', say('250 OK id=1abCde-0000-01'), { kind: 'sent', id: '1abCde-0000-01' }],
    ['taken', say('250 Ok 0102018c-aaaa-bbbb'), { kind: 'sent', id: '0102018c-aaaa-bbbb' }],
    ['taken', 'cut', { kind: 'unknown', reason: 'connection lost' }],
    ['taken', 'hang', { kind: 'unknown', reason: 'timeout' }],
  ]

  for (const without of [[], ['PIPELINING']])
    test.each(before)(`at %s with %j is told as %j ${without}`, async (at, fault, wanted) => {
      const { sink, sendOne } = await started({ without })
      const item = aMail()
      const isBefore = ['connect', 'hello', 'mail'].includes(at)
      sink.script(isBefore ? ANYBODY : item.to, { at, fault })
      // A small mail is written whole before the other side can hang up: nobody here can see what it read of it.
      expect(await sendOne(item)).toMatchObject(wanted)
      expect(sink.taken.has(item.to)).toBe(['sent', 'unknown'].includes(wanted.kind ?? '') && at !== 'message')
      expect(await sendOne(aMail({ inboxProvider: 'another' }))).toMatchObject({ kind: 'sent' })
    })

  // After an answer that is none, a mail of which only the envelope was sent may be tried again at once.
  const between = before.filter(
    ([at, , wanted]) =>
      ['rcpt', 'data', 'message', 'taken'].includes(at) &&
      !('reason' in wanted && wanted.reason === 'answer not understood'),
  )
  test.each(between)('at %s with %j costs no other mail of the same connection anything', async (at, fault, wanted) => {
    const { sink, send } = await started()
    const [first, second, ...others] = Array.from({ length: 4 }, (_, n) => aMail({ inboxProvider: `${n}` })) as [
      EmailItem,
      EmailItem,
    ]
    sink.script(second.to, { at, fault })
    const outcomes = await send(first, second, ...others)
    expect(outcomes[1]).toMatchObject(wanted)
    expect(outcomes.filter((_, n) => n !== 1).map(({ kind }) => kind)).toEqual(['sent', 'sent', 'sent'])
    for (const { to } of [first, ...others]) expect(sink.taken.get(to)).toBe(1)
  })

  test('in the middle of a long message is no more than another try', async () => {
    const { sink, sendOne } = await started()
    const item = aMail({ content: { ...CONTENT, text: ['a long text\n'.repeat(700_000)] } })
    sink.script(item.to, { at: 'message', fault: 'cut' })
    expect(await sendOne(item)).toEqual({ kind: 'retry', reason: 'connection lost' })
    expect(sink.taken.has(item.to)).toBe(false)
  })

  test('in the middle of a file is no more than another try', async () => {
    const { sink, sendOne } = await started()
    const item = aMail({ content: { ...CONTENT, files: [aFile(7_000_000)] } })
    sink.script(item.to, { at: 'message', fault: 'cut' })
    expect(await sendOne(item)).toEqual({ kind: 'retry', reason: 'connection lost' })
    expect(sink.taken.has(item.to)).toBe(false)
  })

  test.each([
    ['a greeting that comes byte by byte', (socket: Socket) => drip(socket, '220 a very slow greeting\r\n'), 'timeout'],
    ['megabytes of nonsense', (socket: Socket) => socket.write('x'.repeat(10_000_000)), 'answer not understood'],
    [
      'something else than mail',
      (socket: Socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
      'answer not understood',
    ],
    [
      'a greeting that never ends',
      (socket: Socket) => socket.write('220-on and on\r\n'.repeat(5_000)),
      'answer not understood',
    ],
  ])('with %s is given up', async (_, greet, reason) => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      greet(socket)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { sendOne } = relayTo((server.address() as AddressInfo).port, { answerMs: 300 })
    expect(await sendOne()).toEqual({ kind: 'retry', reason, pausesProvider: true })
  })

  function drip(socket: Socket, text: string) {
    let n = 0
    const timer = setInterval(() => socket.write(text[n++ % text.length] as string), 50)
    socket.on('close', () => clearInterval(timer))
  }

  test('hands none over twice when one of ten cuts it after the final dot', async () => {
    const { sink, send } = await started({}, { connections: 5 })
    const items = Array.from({ length: 200 }, () => aMail())
    for (const [n, { to }] of items.entries()) if (n % 10 === 0) sink.script(to, { at: 'taken', fault: 'cut' })
    const outcomes = await send(...items)
    for (const [n, { kind }] of outcomes.entries()) expect(kind, `${n}`).toBe(n % 10 === 0 ? 'unknown' : 'sent')
    expect(items.map(({ to }) => sink.taken.get(to))).toEqual(Array(200).fill(1))
  })
})

describe('a kept connection', () => {
  test('carries many mails, and is given back after so many', async () => {
    const { sink, send } = await started({}, { mailsEach: 4 })
    expect(new Set((await send(...Array.from({ length: 10 }, () => aMail()))).map(({ kind }) => kind))).toEqual(
      new Set(['sent']),
    )
    expect(sink.met.get('connect')).toBe(3)
  })

  test('goes on after a refusal', async () => {
    const { sink, send } = await started()
    const items = [aMail(), aMail(), aMail()]
    sink.script(items[0]?.to ?? '', { at: 'rcpt', fault: say('550 5.1.1 nobody') })
    sink.script(items[1]?.to ?? '', { at: 'data', fault: say('554 5.6.0 no') })
    expect((await send(...items)).map(({ kind }) => kind)).toEqual(['gone', 'failed', 'sent'])
    expect([sink.met.get('connect'), sink.met.get('reset')]).toEqual([1, 2])
  })

  test('that the server let go in the meantime is replaced, and no mail suffers for it', async () => {
    const { sink, sendOne } = await started()
    await sendOne()
    sink.script(ANYBODY, { at: 'mail', fault: 'cut' })
    expect(await sendOne()).toMatchObject({ kind: 'sent' })
    sink.script(ANYBODY, { at: 'mail', fault: say('421 4.4.2 idle for too long') })
    expect(await sendOne()).toMatchObject({ kind: 'sent' })
    expect([sink.met.get('connect'), sink.received.length]).toEqual([3, 3])
  })

  test('is let go after a while without mail', async () => {
    const { sink, sendOne } = await started({}, { idleMs: 20 })
    await sendOne()
    await expect.poll(() => sink.open()).toBe(0)
  })

  test('is all there is where the server wants no more', async () => {
    const { sink, send } = await started({}, { connections: 5 })
    await send(aMail())
    for (let n = 0; n < 4; n++) sink.script(ANYBODY, { at: 'connect', fault: say('421 4.7.0 too many connections') })
    const outcomes = await send(...Array.from({ length: 30 }, () => aMail()))
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['sent']))
  })
})

describe('TLS and credentials', () => {
  const closing = async (settings: MailSinkSettings, changes: Partial<RelayChannelSettings>) => {
    const { sink, sendOne } = await started(settings, changes)
    return { sink, outcome: await sendOne() }
  }

  test.each(['starttls', 'implicit'] as const)(
    '%s takes a certificate of that name, and says who we are',
    async (tls) => {
      const isImplicit = tls === 'implicit'
      const { sink, outcome } = await closing(
        { name: NAME, auth, isImplicit },
        { tls, auth, port: isImplicit ? 465 : 587 },
      )
      expect(outcome).toEqual({ kind: 'sent' })
      expect(sink.received[0]?.isSecret).toBe(true)
    },
  )

  test.each(['starttls', 'implicit'] as const)('%s takes no other', async (tls) => {
    const isImplicit = tls === 'implicit'
    const port = isImplicit ? 465 : 587
    const wanted = { kind: 'misconfigured', reason: 'certificate not accepted' }
    expect((await closing({ name: 'else.example', isImplicit }, { tls, port })).outcome).toEqual(wanted)
    const { sink } = await started({ name: NAME, isImplicit })
    const stranger = relayTo(sink.port, { tls, port })
    expect(await stranger.sendOne()).toEqual(wanted)
  })

  test('starttls insists', async () => {
    const { sink, outcome } = await closing({}, { tls: 'starttls' })
    expect(outcome).toEqual({ kind: 'misconfigured', reason: 'encryption not offered' })
    expect(sink.met.get('mail')).toBeUndefined()
  })

  test('opportunistic takes what there is', async () => {
    const any = await closing({ name: 'else.example' }, { tls: 'opportunistic' })
    expect([any.outcome.kind, any.sink.received[0]?.isSecret]).toEqual(['sent', true])
    const none = await closing({}, { tls: 'opportunistic' })
    expect([none.outcome.kind, none.sink.received[0]?.isSecret]).toEqual(['sent', false])
    const { sink, sendOne } = await started({ name: NAME }, { tls: 'opportunistic' })
    sink.script(ANYBODY, { at: 'starttls', fault: say('220 go ahead, but there is nothing') })
    expect([(await sendOne()).kind, sink.received[0]?.isSecret]).toEqual(['sent', false])
  })

  test('credentials are not said in the clear, but inside the networks that were named', async () => {
    const { sink, outcome } = await closing({ auth }, { tls: 'opportunistic', auth })
    expect(outcome).toEqual({ kind: 'misconfigured', reason: 'no credentials without encryption' })
    expect(sink.met.get('auth')).toBeUndefined()
    const dial = createDial({ allow: ['127.0.0.1'] })
    const inside = relayTo(sink.port, { dial, host: '127.0.0.1', port: sink.port, auth })
    expect(await inside.sendOne()).toEqual({ kind: 'sent' })
  })

  test('nor to somebody else who has a certificate', async () => {
    const { sink, outcome } = await closing({ name: 'else.example', auth }, { tls: 'opportunistic', auth })
    expect(outcome).toMatchObject({ kind: 'misconfigured' })
    expect(sink.met.get('auth')).toBeUndefined()
  })

  test('wrong ones are for the app to mend; a server that cannot tell just now is not', async () => {
    const wrong = { user: 'me', password: 'wrong' }
    const refused = { kind: 'misconfigured', reason: 'credentials refused' }
    expect((await closing({ name: NAME, auth }, { tls: 'starttls', auth: wrong })).outcome).toEqual(refused)
    const { sink, sendOne } = await started({ name: NAME, auth }, { tls: 'starttls', auth })
    sink.script(ANYBODY, { at: 'auth', fault: say('454 4.7.0 not now') })
    expect(await sendOne()).toMatchObject({ kind: 'retry', pausesProvider: true })
    const nobody = await closing({ name: NAME }, { tls: 'starttls', auth })
    expect(nobody.outcome).toEqual({ kind: 'misconfigured', reason: 'no way to sign in' })
    const unknown = await closing({ name: NAME, auth }, { tls: 'starttls' })
    expect(unknown.outcome).toEqual({ kind: 'misconfigured', reason: 'sender refused' })
  })

  test('are said the older way where the server knows no other', async () => {
    const inTurns = async (password: string) => {
      const said = { user: 'me', password }
      const { sink, sendOne } = await started(
        { name: NAME, auth, isImplicit: true },
        { tls: 'implicit', port: 465, auth: said },
      )
      sink.script(ANYBODY, { at: 'hello', fault: say('250-sink.invalid\r\n250-8BITMIME\r\n250 AUTH LOGIN') })
      return { outcome: await sendOne(), received: sink.received.length }
    }
    expect(await inTurns(auth.password)).toEqual({ outcome: { kind: 'sent' }, received: 1 })
    const refused = { kind: 'misconfigured', reason: 'credentials refused' }
    expect(await inTurns('wrong')).toEqual({ outcome: refused, received: 0 })
  })

  test('addresses inside are not reached unless they were named', async () => {
    const sink = await startMailSink()
    onTestFinished(() => sink.close())
    const { sendOne } = relayTo(sink.port, { dial: createDial({}), host: '127.0.0.1', port: sink.port })
    expect(await sendOne()).toEqual({ kind: 'misconfigured', reason: 'address not allowed' })
    const other = relayTo(sink.port, { dial: createDial({}), host: '93.184.215.14', port: 22 })
    expect(await other.sendOne()).toEqual({ kind: 'misconfigured', reason: 'port not allowed' })
    expect(sink.met.get('connect')).toBeUndefined()
  })
})

describe('what it says', () => {
  test('the envelope of the next mail comes with the end of the one before it, where that is offered', async () => {
    for (const [offers, wanted] of [
      [['hello', 'PIPELINING'], true],
      [['hello'], false],
    ] as const) {
      const chunks: string[] = []
      const { send } = await listening([...offers], undefined, {}, undefined, (chunk) => chunks.push(chunk))
      expect((await send(aMail(), aMail(), aMail())).map(({ kind }) => kind)).toEqual(['sent', 'sent', 'sent'])
      expect(chunks.some((chunk) => /\r\n\.\r\nMAIL FROM.*\r\nRCPT TO.*\r\nDATA\r\n$/s.test(chunk))).toBe(wanted)
    }
  })

  /** A server of a few lines: tells all that it was told. */
  async function listening(
    offers: string[],
    onLine?: (line: string, socket: Socket) => boolean,
    changes: Partial<RelayChannelSettings> = {},
    ca?: string,
    onChunk?: (chunk: string) => void,
  ) {
    const lines: string[] = []
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.write('220 hello\r\n')
      let isData = false
      let rest = ''
      socket.on('data', (chunk) => {
        onChunk?.(String(chunk))
        rest += chunk
        for (let end = rest.indexOf('\r\n'); end >= 0; end = rest.indexOf('\r\n')) {
          const line = rest.slice(0, end)
          rest = rest.slice(end + 2)
          lines.push(line)
          if (isData) {
            if (line !== '.') continue
            isData = false
            socket.write('250 ok\r\n')
          } else if (onLine?.(line, socket)) continue
          else if (line.startsWith('EHLO'))
            socket.write([...offers.map((it) => `250-${it}`), '250 HELP\r\n'].join('\r\n'))
          else if (line === 'DATA') {
            isData = true
            socket.write('354 go\r\n')
          } else socket.write('250 ok\r\n')
        }
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    return { lines, ...relayTo(port, changes, ca) }
  }

  test('asks for reports, names sizes and returns, where that is offered', async () => {
    const { lines, sendOne } = await listening(['me', 'PIPELINING', 'DSN', 'SIZE 100000', '8BITMIME'])
    const item = aMail({ to: 'a+b=c@example.net' })
    expect(await sendOne(item)).toEqual({ kind: 'sent' })
    expect(lines.slice(0, 4)).toEqual([
      'EHLO carillon.example.com',
      expect.stringMatching(
        new RegExp(`^MAIL FROM:<b-${item.reference}@bounce.example.com> SIZE=\\d+ RET=HDRS ENVID=${item.reference}$`),
      ),
      'RCPT TO:<a+b=c@example.net> NOTIFY=FAILURE,DELAY ORCPT=rfc822;a+2Bb+3Dc@example.net',
      'DATA',
    ])
  })

  test('nothing of it to one that offers nothing, and nobody as the sender', async () => {
    const { lines, sendOne } = await listening(
      ['me'],
      (line, socket) => line.startsWith('EHLO') && socket.write('502 what\r\n'),
    )
    expect(await sendOne(aMail({ to: 'a@example.net', envelopeFrom: '' }))).toEqual({ kind: 'sent' })
    expect(lines.slice(0, 5)).toEqual([
      'EHLO carillon.example.com',
      'HELO carillon.example.com',
      'MAIL FROM:<>',
      'RCPT TO:<a@example.net>',
      'DATA',
    ])
  })

  test('UTF-8 only to one that knows it', async () => {
    const knows = await listening(['me', 'SMTPUTF8', '8BITMIME'])
    expect(await knows.sendOne(aMail({ to: 'jörg@bücher.example' }))).toEqual({ kind: 'sent' })
    expect(knows.lines[1]).toMatch(/ BODY=8BITMIME SMTPUTF8$/)
    expect(knows.lines[2]).toBe('RCPT TO:<jörg@xn--bcher-kva.example>')
    const other = await listening(['me', '8BITMIME'])
    expect(await other.sendOne(aMail({ to: 'jörg@example.com' }))).toEqual({
      kind: 'failed',
      reason: 'address not supported',
    })
    expect(await other.sendOne(aMail({ to: 'someone@bücher.example' }))).toEqual({ kind: 'sent' })
  })

  test('no more than fits', async () => {
    const { lines, sendOne } = await listening(['me', 'SIZE 500'])
    expect(await sendOne()).toEqual({ kind: 'failed', reason: 'message too large' })
    expect(lines).toHaveLength(1)
  })

  test('files with the mail that they belong to, counted in its size', async () => {
    for (const settings of [{}, { name: NAME }, { without: ['PIPELINING'] }]) {
      const { sink, send } = await started(settings, { tls: settings.name ? 'starttls' : 'none' })
      const content = { ...CONTENT, files: [aFile(10), aFile(1_000_000), aFile(0)] }
      const items = [aMail(), aMail({ content }), aMail(), aMail({ content }), aMail({ content })]
      expect((await send(...items)).map(({ kind }) => kind)).toEqual(items.map(() => 'sent'))
      for (const item of items) {
        const arrived = sink.received.filter(({ recipients }) => recipients.includes(item.to))
        expect(arrived.map(({ source }) => hashOf(source))).toEqual([hashOf(await buildMessage(item))])
      }
    }
    const item = aMail({ content: { ...CONTENT, files: [aFile(50_000)] } })
    const knowing = await listening(['me', 'SIZE 100000'])
    expect(await knowing.sendOne(item)).toEqual({ kind: 'sent' })
    expect(knowing.lines[1]).toContain(` SIZE=${(await buildMessage(item)).length}`)
    const small = await listening(['me', 'SIZE 60000'])
    expect(await small.sendOne(item)).toEqual({ kind: 'failed', reason: 'message too large' })
  })

  test.each(['250-evil\r\n250 AUTH PLAIN\r\n235 welcome\r\n', '250-evil\r\n250 AUTH PL'])(
    'nothing that was said before TLS counts after it: %j',
    async (injected) => {
      const { key, cert } = certificateFor(NAME)
      const inside: string[] = []
      const { sendOne } = await listening(
        ['me', 'STARTTLS'],
        (line, socket) => {
          if (line !== 'STARTTLS') return false
          socket.removeAllListeners('data')
          socket.write(`220 go\r\n${injected}`)
          const secured = new TLSSocket(socket, { isServer: true, key, cert })
          secured.on('error', () => {})
          secured.on('data', (chunk) => {
            inside.push(...String(chunk).trimEnd().split('\r\n'))
            secured.write('250 me\r\n')
          })
          return true
        },
        { tls: 'starttls', auth },
        cert,
      )
      expect(['retry', 'misconfigured']).toContain((await sendOne()).kind)
      expect(inside.filter((line) => !line.startsWith('EHLO'))).toEqual([])
    },
  )

  test('nothing more to one that refuses a message before it is all there', async () => {
    let refused: Socket | undefined
    const answerMs = 20_000
    const onLine = (line: string, socket: Socket) => {
      if (refused === undefined && line === 'DATA') {
        refused = socket
        return socket.write('354 go\r\n')
      }
      if (socket !== refused) return false
      if (line.startsWith('To:')) {
        socket.pause()
        socket.write('552 5.3.4 too much\r\n')
      }
      return true
    }
    const { lines, send } = await listening(['me', 'PIPELINING'], onLine, { answerMs })
    const long = aMail({ content: { ...CONTENT, text: ['a long text\n'.repeat(700_000)] } })
    const began = performance.now()
    const [first, second] = await send(long, aMail())
    expect([first?.kind, second?.kind]).toEqual(['failed', 'sent'])
    expect(lines.filter((line) => line.startsWith('EHLO'))).toHaveLength(2)
    // The second waited for nothing on the connection of the first.
    expect(performance.now() - began).toBeLessThan(answerMs)
  })

  test('further recipients get it only with the first, and in no header', async () => {
    const { sink, sendOne } = await started()
    const item = aMail({ bcc: ['archive@example.com', 'gone@example.com'] })
    sink.script('gone@example.com', { at: 'rcpt', fault: say('550 5.1.1 nobody') })
    expect(await sendOne(item)).toEqual({ kind: 'sent' })
    expect(sink.received[0]?.recipients).toEqual([item.to, 'archive@example.com'])
    expect(sink.received[0]?.source.includes('archive')).toBe(false)
    const refused = aMail({ bcc: ['archive@example.com'] })
    sink.script(refused.to, { at: 'rcpt', fault: say('550 5.1.1 nobody') })
    expect(await sendOne(refused)).toMatchObject({ kind: 'gone' })
    expect(sink.received).toHaveLength(1)
  })
})

describe('a lane', () => {
  const slowDown = (sink: MailSink, item: EmailItem, text: string) =>
    sink.script(item.to, { at: 'rcpt', fault: say(text) })

  test.each(['421 4.7.0 try later', '451 4.3.0 busy', '450 4.7.1 too many messages'])(
    'that is asked by %s to slow down answers at once, and the others go on',
    async (text) => {
      const clock = virtualClock()
      const { sink, sendOne } = await started({}, { clock })
      const first = aMail({ inboxProvider: 'google' })
      slowDown(sink, first, text)
      expect(await sendOne(first)).toEqual({ kind: 'retry', reason: 'slow down' })
      const second = aMail({ inboxProvider: 'google' })
      const outcome = await sendOne(second)
      expect(outcome).toEqual({ kind: 'retry', reason: 'slowed', afterMs: expect.any(Number), wasNotAttempted: true })
      expect(await sendOne(aMail({ inboxProvider: 'yahoo_us' }))).toEqual({ kind: 'sent' })
      clock.advance({ ms: (outcome as { afterMs: number }).afterMs })
      expect(await sendOne(second)).toEqual({ kind: 'sent' })
      expect(sink.met.get('rcpt')).toBe(3)
    },
  )

  test('that is slowed answers those as well that wait for a connection', async () => {
    const clock = virtualClock()
    const { sink, send } = await started({}, { clock })
    const items = Array.from({ length: 20 }, (_, n) => aMail({ inboxProvider: n % 2 === 0 ? 'google' : 'yahoo_us' }))
    slowDown(sink, items[0] as EmailItem, '421 4.7.28 unusual rate')
    const outcomes = await send(...items)
    expect(outcomes.slice(1)).toEqual(
      items
        .slice(1)
        .map(({ inboxProvider: lane }) =>
          lane === 'google' ? expect.objectContaining({ wasNotAttempted: true }) : { kind: 'sent' },
        ),
    )
  })

  test('is not slowed by grey lists, nor by what is wrong with one mailbox', async () => {
    const { sink, sendOne } = await started()
    for (const text of [
      '451 4.7.1 Greylisted, try again in 300 s',
      '450 4.2.1 busy',
      '452 4.2.2 full',
      '550 5.7.1 spam',
    ]) {
      const item = aMail()
      slowDown(sink, item, text)
      await sendOne(item)
      expect(await sendOne()).toEqual({ kind: 'sent' })
    }
  })
})

test('no more go out in a second than the relay allows', async () => {
  const { send } = await started({}, { perSecond: 50 })
  const began = performance.now()
  const outcomes = await send(...Array.from({ length: 26 }, () => aMail()))
  expect(outcomes.every(({ kind }) => kind === 'sent')).toBe(true)
  expect(performance.now() - began).toBeGreaterThan(420)
})

describe('a relay that several apps share', () => {
  const mailsOf = (appId: string, lane: TrafficSource['lane'], count: number) =>
    Array.from({ length: count }, () => aMail({ source: { appId, lane } }))

  /** Mail of the app called hostile hangs, at that stage, until it is given up. */
  async function hanging(connections: number, at: SmtpStage) {
    const relay = await started({}, { connections, isShared: true, answerMs: 60_000, takenMs: 60_000 })
    const { sink, channel } = relay
    // What hangs is not waited for: the server goes away.
    onTestFinished(() => sink.close())
    return {
      ...relay,
      hang(lane: TrafficSource['lane'], count: number) {
        const mails = mailsOf('hostile', lane, count)
        for (const { to } of mails) sink.script(to, { at, fault: 'hang' })
        void channel.send(mails)
      },
      async holding(count: number) {
        while (sink.open() < count) await nextTurn()
      },
    }
  }

  for (const at of ['rcpt', 'taken'] as const)
    test.each([5, 10])(`has mail of others on %i connections while 600 of one hang at ${at}`, async (connections) => {
      const { sink, channel, hang, holding } = await hanging(connections, at)
      hang('bulk', 300)
      await holding(Math.floor(connections / 2))
      hang('direct', 300)
      await holding(Math.floor(connections / 2) + 1)
      const sent = (count: number) => Array(count).fill({ kind: 'sent' })
      expect(await channel.send(mailsOf('other', 'direct', 1))).toEqual(sent(1))
      expect(await channel.send(mailsOf('other', 'bulk', 60))).toEqual(sent(60))
      const [bulk, direct] = [mailsOf('other', 'bulk', 60), mailsOf('other', 'direct', 20)]
      expect(await Promise.all([channel.send(bulk), channel.send(direct)])).toEqual([sent(60), sent(20)])
      expect(sink.open()).toBeLessThanOrEqual(connections)
    })

  test('keeps its pace, with direct mail first', async () => {
    const { sink, channel } = await started({}, { connections: 4, isShared: true, perSecond: 50 })
    const [bulk, direct] = [mailsOf('a', 'bulk', 20), mailsOf('b', 'direct', 2)]
    const sent = channel.send(bulk)
    while (sink.received.length === 0) await nextTurn()
    await channel.send(direct)
    expect(sink.received.length).toBeLessThan(bulk.length / 2)
    await sent
    expect(sink.received).toHaveLength(22)
  })
})

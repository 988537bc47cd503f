import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { PDU } from 'smpp'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type SmppSinkSettings, startSmppSink } from '../../../test/sinks/texts.ts'
import { createLog } from '../../lib/log.ts'
import { certificateFor } from '../../sink/certificate.ts'
import type { Channel } from '../channel.ts'
import { openOutbound } from '../outbound.ts'
import type { InboundSms, SmsItem, SmsReceipt } from './message.ts'
import { openSmpp, type SmppChannelSettings } from './smpp.ts'

const account = { systemId: 'carillon', password: 'secret' }
const TO = '+15005550001'
const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

const sinkWith = async (settings: Partial<SmppSinkSettings> = {}) => {
  const sink = await startSmppSink({ ...account, ...settings })
  stops.push(sink.close)
  return sink
}
function channelTo(port: number, more: Partial<SmppChannelSettings> = {}) {
  const receipts: SmsReceipt[] = []
  const texts: InboundSms[] = []
  const channel = openSmpp({
    outbound: openOutbound({ allow: ['127.0.0.1'] }),
    log: createLog('silent'),
    host: '127.0.0.1',
    port,
    ...account,
    from: '+15005550100',
    onReceipt: async (receipt) => void receipts.push(receipt),
    onText: async (text) => void texts.push(text),
    answerMs: 2_000,
    pausesMs: { first: 5, longest: 20 },
    ...more,
  })
  stops.push(() => channel.close())
  return { channel, receipts, texts }
}
const text = (text: string, to = TO): SmsItem => ({ to, text })
const sendOne = async (channel: Channel<SmsItem>, item: SmsItem) => (await channel.send([item]))[0]
const messageOf = (pdu: PDU | undefined) => pdu?.short_message?.message

describe('a text', () => {
  test('goes out in the alphabet that centres take for theirs', async () => {
    const sink = await sinkWith()
    const { channel } = channelTo(sink.port)
    expect(await sendOne(channel, text('Grüße: 5 € {ok}'))).toEqual({ kind: 'sent', id: 'm1' })
    expect(sink.submitted[0]).toMatchObject({
      data_coding: 0,
      esm_class: 0,
      registered_delivery: 1,
      source_addr: '15005550100',
      source_addr_ton: 1,
      source_addr_npi: 1,
      destination_addr: '15005550001',
    })
    expect(messageOf(sink.submitted[0])).toBe('Grüße: 5 € {ok}')
    expect(sink.binds[0]).toMatchObject({ system_id: 'carillon', password: 'secret', interface_version: 0x34 })
  })

  test('goes out in UTF-16 where the alphabet does not reach, and in parts where it is long', async () => {
    const sink = await sinkWith()
    const { channel } = channelTo(sink.port)
    const long = `${'ж'.repeat(66)}🎉${'ж'.repeat(70)}`
    expect(await sendOne(channel, text(long))).toEqual({ kind: 'sent', id: 'm3' })
    expect(sink.submitted.map(({ data_coding, esm_class }) => [data_coding, esm_class])).toEqual(
      Array(3).fill([8, 0x40]),
    )
    expect(sink.submitted.map(({ registered_delivery }) => registered_delivery)).toEqual([0, 0, 1])
    expect(sink.submitted.map(messageOf).join('')).toBe(long)
    const headers = sink.submitted.map((pdu) => [...(pdu.short_message?.udh?.[0] ?? [])])
    const reference = headers[0]?.[2]
    expect(headers).toEqual([1, 2, 3].map((number) => [0, 3, reference, 3, number]))
    await sendOne(channel, text(long))
    expect(sink.submitted[3]?.short_message?.udh?.[0]?.[2]).not.toBe(reference)
  })

  test('says what kind of sender it comes from', async () => {
    const sink = await sinkWith()
    const { channel } = channelTo(sink.port)
    await channel.send(['Carillon', '12345', '+4915112345678'].map((from) => ({ ...text('a'), from })))
    const senders = sink.submitted.map((pdu) => [pdu.source_addr, pdu.source_addr_ton, pdu.source_addr_npi])
    expect(senders.sort()).toEqual([
      ['12345', 3, 0],
      ['4915112345678', 1, 1],
      ['Carillon', 5, 0],
    ])
  })
})

describe('the outcome', () => {
  test.each([
    [0x58, { kind: 'retry', reason: 'too many requests', pausesProvider: true, afterMs: 1_000 }],
    [0x14, { kind: 'retry', reason: 'queue full', pausesProvider: true, afterMs: 5_000 }],
    [0x08, { kind: 'retry', reason: 'message centre failed' }],
    [0x0b, { kind: 'gone', reason: 'not a valid number' }],
    [0x0a, { kind: 'misconfigured', reason: 'sender not accepted' }],
    [0x45, { kind: 'failed', reason: 'status 69' }],
    [0x65, { kind: 'failed', reason: 'status 101' }],
    [0x401, { kind: 'failed', reason: 'status 1025' }],
  ])('of status %d', async (status, expected) => {
    const sink = await sinkWith()
    sink.script(TO, status)
    expect(await sendOne(channelTo(sink.port).channel, text('a'))).toEqual(expected)
  })

  test('of too many requests holds for all that had not been asked yet', async () => {
    const sink = await sinkWith()
    sink.script('+15005550002', 0x58)
    const { channel } = channelTo(sink.port, { window: 1 })
    const outcomes = await channel.send([text('a'), text('b', '+15005550002'), text('c'), text('d')])
    expect(outcomes.map((it) => (it.kind === 'retry' ? it.pausesProvider : it.kind))).toEqual([
      'sent',
      true,
      true,
      true,
    ])
    expect(sink.submitted).toHaveLength(2)
  })

  test('of a part that is not taken is the outcome of the text, and no further part follows', async () => {
    const sink = await sinkWith()
    sink.script(TO, 0, 0x58)
    const outcome = await sendOne(channelTo(sink.port).channel, text('a'.repeat(400)))
    expect(outcome).toMatchObject({ kind: 'retry', pausesProvider: true })
    expect(sink.submitted).toHaveLength(2)
  })

  test('of a connection that broke after the text was written is unknown, before it another try', async () => {
    const sink = await sinkWith()
    sink.script('+15005550002', 'cut')
    sink.script('+15005550003', 'hang')
    const { channel } = channelTo(sink.port, { answerMs: 150 })
    expect(await sendOne(channel, text('a', '+15005550002'))).toEqual({ kind: 'unknown', reason: 'connection lost' })
    expect(await sendOne(channel, text('a', '+15005550003'))).toEqual({ kind: 'unknown', reason: 'timeout' })
    expect(await sendOne(channel, text('a'))).toMatchObject({ kind: 'sent' })
  })
})

describe('the connection', () => {
  test('with wrong credentials is a wrong setting; the secret is told to nobody', async () => {
    const sink = await sinkWith()
    const wrong = channelTo(sink.port, { password: 'wrong' }).channel
    expect(await wrong.send([text('a'), text('b')])).toEqual(
      Array(2).fill({ kind: 'misconfigured', reason: 'credentials refused' }),
    )
    expect(sink.submitted).toHaveLength(0)
  })

  test('to an address inside is refused as a wrong setting', async () => {
    const sink = await sinkWith()
    const { channel } = channelTo(sink.port, { outbound: openOutbound() })
    expect(await sendOne(channel, text('a'))).toEqual({ kind: 'misconfigured', reason: 'address not allowed' })
    expect(sink.binds).toHaveLength(0)
  })

  test('can be encrypted, with a certificate for the name of the centre', async () => {
    const tls = certificateFor('smsc.example')
    const sink = await sinkWith({ tls })
    const connect = { 'ssmpp://smsc.example:3550': { host: '127.0.0.1', port: sink.port } }
    const trusting = { host: 'smsc.example', port: undefined, isTls: true }
    const outbound = openOutbound({ route: { ca: tls.cert, connect } })
    expect(await sendOne(channelTo(sink.port, { ...trusting, outbound }).channel, text('a'))).toMatchObject({
      kind: 'sent',
    })
    const other = openOutbound({ route: { connect } })
    expect(await sendOne(channelTo(sink.port, { ...trusting, outbound: other }).channel, text('a'))).toEqual({
      kind: 'retry',
      reason: 'not connected',
    })
    expect(sink.submitted).toHaveLength(1)
  })

  test('comes back by itself, without anybody sending', async () => {
    const sink = await sinkWith()
    channelTo(sink.port)
    for (let times = 1; times <= 3; times++) {
      await vi.waitFor(() => expect(sink.binds).toHaveLength(times))
      await vi.waitFor(() => expect(sink.sessions.size).toBe(1))
      for (const { socket } of sink.sessions) socket.destroy()
    }
  })

  test('is asked whether it is alive, and given up when it does not answer', async () => {
    const sink = await sinkWith()
    channelTo(sink.port, { enquireMs: 20, answerMs: 100 })
    await vi.waitFor(() => expect(sink.enquiries()).toBeGreaterThan(2))
    expect(sink.binds).toHaveLength(1)
    for (const { socket } of sink.sessions) socket.removeAllListeners('readable')
    await vi.waitFor(() => expect(sink.binds.length).toBeGreaterThan(1))
  })

  test('to something that speaks no SMPP ends, and harms nobody', async () => {
    for (const words of [
      'HTTP/1.1 400 Bad Request\r\n\r\n',
      '\0\0\0\x01',
      '\0\0\0\x10',
      '\0\0\0\0',
      '\xff\xff\xff\xff',
    ]) {
      const server = createServer((socket) => {
        socket.on('error', () => {})
        socket.write(Buffer.from(words, 'latin1'))
        socket.resume()
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { channel } = channelTo((server.address() as AddressInfo).port, { answerMs: 60 })
      expect(await sendOne(channel, text('a')), words).toMatchObject({ kind: 'retry' })
      await channel.close()
      server.close()
    }
  })

  test('is ended in good manners', async () => {
    const sink = await sinkWith()
    const { channel } = channelTo(sink.port)
    await sendOne(channel, text('a'))
    const [session] = sink.sessions
    const seen: string[] = []
    session?.on('pdu', ({ command }: PDU) => seen.push(command))
    await channel.close()
    expect(seen.filter((command) => command !== 'deliver_sm_resp')).toEqual(['unbind'])
  })

  test('is not waited for when the channel closes', async () => {
    const server = createServer(() => {})
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { channel } = channelTo((server.address() as AddressInfo).port, { answerMs: 60_000 })
    await channel.close()
    server.close()
  })
})

describe('what the centre hands to us', () => {
  test('reports, by the id of the outcome', async () => {
    const states = { '+15005550002': 'UNDELIV', '+15005550003': 'ENROUTE', '+15005550004': 'NONSENSE' }
    const sink = await sinkWith({ states })
    const { channel, receipts } = channelTo(sink.port)
    for (const to of [TO, ...Object.keys(states)]) await sendOne(channel, text('a', to))
    await vi.waitFor(() => expect(receipts).toHaveLength(4))
    expect(receipts).toEqual([
      { id: 'm1', state: 'delivered' },
      { id: 'm2', state: 'failed', reason: 'undelivered' },
      { id: 'm3', state: 'passed-on' },
      { id: 'm4', state: 'unknown' },
    ])
  })

  test('reports in fields, which count more than the text', async () => {
    const sink = await sinkWith()
    const { receipts } = channelTo(sink.port)
    await vi.waitFor(() => expect(sink.sessions.size).toBe(1))
    await sink.deliver({
      esm_class: 4,
      receipted_message_id: 'abc',
      message_state: 3,
      short_message: Buffer.from('id:9'),
    })
    await sink.deliver({ esm_class: 0, receipted_message_id: 'abd', message_state: 2 })
    await sink.deliver({ esm_class: 4, short_message: Buffer.from('nothing that we know') })
    expect(receipts).toEqual([
      { id: 'abc', state: 'failed', reason: 'expired' },
      { id: 'abd', state: 'delivered' },
    ])
  })

  test('texts, with what they ask for', async () => {
    const sink = await sinkWith()
    const { texts } = channelTo(sink.port)
    await vi.waitFor(() => expect(sink.sessions.size).toBe(1))
    const from = { source_addr: '15005550001', destination_addr: '12345' }
    expect(await sink.deliver({ ...from, data_coding: 0, short_message: Buffer.from('Stop') })).toBe(0)
    const russian = Buffer.from('Привет', 'utf16le').swap16()
    expect(await sink.deliver({ ...from, data_coding: 8, short_message: russian })).toBe(0)
    expect(await sink.deliver({ ...from, data_coding: 4, short_message: Buffer.from('START') })).toBe(0)
    expect(await sink.deliver({ ...from, message_payload: Buffer.from('help'), data_coding: 0 })).toBe(0)
    expect(texts).toEqual([
      { from: '+15005550001', to: '12345', text: 'Stop', optOut: 'stop' },
      { from: '+15005550001', to: '12345', text: 'Привет' },
      { from: '+15005550001', to: '12345', text: 'START', optOut: 'start' },
      { from: '+15005550001', to: '12345', text: 'help', optOut: 'help' },
    ])
  })

  test('what could not be kept is asked for again', async () => {
    const sink = await sinkWith()
    channelTo(sink.port, { onText: () => Promise.reject(new Error('database down')) })
    await vi.waitFor(() => expect(sink.sessions.size).toBe(1))
    expect(await sink.deliver({ source_addr: '15005550001', short_message: Buffer.from('STOP'), data_coding: 0 })).toBe(
      0x64,
    )
  })
})

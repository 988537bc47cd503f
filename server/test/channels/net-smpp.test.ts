// Our side of SMPP, read and answered by an implementation that shares nothing with it.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test, vi } from 'vitest'
import { openOutbound } from '../../src/channels/outbound.ts'
import { decodeGsm7 } from '../../src/channels/sms/gsm7.ts'
import type { InboundSms, SmsReceipt } from '../../src/channels/sms/message.ts'
import { decodeUcs2 } from '../../src/channels/sms/segments.ts'
import { openSmpp } from '../../src/channels/sms/smpp.ts'
import { createLog } from '../../src/lib/log.ts'

const isThere = spawnSync('perl', ['-MNet::SMPP', '-e', '1']).status === 0
const WHY_NOT = 'needs perl with Net::SMPP (Debian: libnet-smpp-perl)'

type Event = { event: string; port?: number; hex?: string } & Record<string, unknown>

let centre: ChildProcess | undefined
afterEach(() => void centre?.kill('SIGKILL'))

async function startCentre() {
  const script = fileURLToPath(new URL('../sinks/smsc.pl', import.meta.url))
  centre = spawn('perl', [script, 'carillon', 'secret'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const events: Event[] = []
  if (centre.stdout) createInterface(centre.stdout).on('line', (line) => events.push(JSON.parse(line)))
  await vi.waitFor(() => expect(events).toHaveLength(1), 10_000)
  return { port: events[0]?.port as number, events }
}

function channelTo(port: number, password = 'secret') {
  const receipts: SmsReceipt[] = []
  const texts: InboundSms[] = []
  const channel = openSmpp({
    outbound: openOutbound({ allow: ['127.0.0.1'] }),
    log: createLog('silent'),
    host: '127.0.0.1',
    port,
    systemId: 'carillon',
    password,
    from: 'Carillon',
    onReceipt: async (receipt) => void receipts.push(receipt),
    onText: async (text) => void texts.push(text),
    pausesMs: { first: 10, longest: 10 },
  })
  return { channel, receipts, texts }
}

test('a stranger’s message centre reads what we send, and we read what it says', async ({ skip }) => {
  if (!isThere) skip(WHY_NOT)
  const { port, events } = await startCentre()
  const { channel, receipts, texts } = channelTo(port)
  const [gsm, ucs2, long] = ['Grüße: 5 € {ok}', 'Привет 🎉', '€'.repeat(200)]
  const outcomes = await channel.send([gsm, ucs2, long].map((text) => ({ to: '+15005550001', text })))
  expect(outcomes.map(({ kind }) => kind)).toEqual(['sent', 'sent', 'sent'])

  const submits = () => events.filter(({ event }) => event === 'submit')
  await vi.waitFor(() => expect(submits()).toHaveLength(5))
  const submitted = submits()
  const common = {
    source_addr: 'Carillon',
    source_addr_ton: 5,
    source_addr_npi: 0,
    destination_addr: '15005550001',
    dest_addr_ton: 1,
    dest_addr_npi: 1,
  }
  const bytesOf = ({ hex = '' }: Event) => Buffer.from(hex, 'hex')
  const alone = submitted.filter(({ esm_class }) => esm_class === 0)
  expect(alone).toHaveLength(2)
  expect(alone.find(({ data_coding }) => data_coding === 0)).toMatchObject({ ...common, registered_delivery: 1 })
  expect(decodeGsm7(bytesOf(alone.find(({ data_coding }) => data_coding === 0) as Event))).toBe(gsm)
  expect(decodeUcs2(bytesOf(alone.find(({ data_coding }) => data_coding === 8) as Event))).toBe(ucs2)
  const parts = submitted.filter(({ esm_class }) => esm_class === 0x40)
  expect(parts.map(({ registered_delivery }) => registered_delivery)).toEqual([0, 0, 1])
  const reference = bytesOf(parts[0] as Event)[3]
  expect(parts.map((part) => [...bytesOf(part).subarray(0, 6)])).toEqual(
    [1, 2, 3].map((number) => [5, 0, 3, reference, 3, number]),
  )
  expect(parts.map((part) => decodeGsm7(bytesOf(part).subarray(6))).join('')).toBe(long)

  await vi.waitFor(() => expect(texts).toHaveLength(3))
  expect(new Set(receipts.map(({ id }) => id))).toEqual(new Set(outcomes.map((it) => it.kind === 'sent' && it.id)))
  expect(receipts.every(({ state }) => state === 'delivered')).toBe(true)
  expect(texts[0]).toEqual({ from: '+15005550001', to: 'Carillon', text: 'Stop', optOut: 'stop' })
  await channel.close()
  await vi.waitFor(() => expect(events.at(-1)?.event).toBe('closed'))
  expect(events.filter(({ event, status }) => event === 'deliver_resp' && status === 0)).toHaveLength(6)
  expect(events.filter(({ event }) => event === 'bind')).toEqual([{ event: 'bind', right: 1, version: 0x34 }])
})

test('its refusals, and its silence, are told apart', async ({ skip }) => {
  if (!isThere) skip(WHY_NOT)
  const { port } = await startCentre()
  const { channel } = channelTo(port)
  const sendTo = async (to: string) => (await channel.send([{ to, text: 'a' }]))[0]
  expect(await sendTo('+15005550058')).toMatchObject({ kind: 'retry', pausesProvider: true })
  expect(await sendTo('+15005550011')).toMatchObject({ kind: 'gone' })
  expect(await sendTo('+15005550099')).toEqual({ kind: 'unknown', reason: 'connection lost' })
  expect(await sendTo('+15005550001')).toMatchObject({ kind: 'sent' })
  await channel.close()
})

test('it lets nobody in with a wrong password', async ({ skip }) => {
  if (!isThere) skip(WHY_NOT)
  const { port } = await startCentre()
  const { channel } = channelTo(port, 'wrong')
  expect(await channel.send([{ to: '+15005550001', text: 'a' }])).toEqual([
    { kind: 'misconfigured', reason: 'credentials refused' },
  ])
  await channel.close()
})

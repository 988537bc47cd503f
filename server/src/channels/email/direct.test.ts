import { describe, expect, onTestFinished, test } from 'vitest'
import { aMail } from '../../../test/channels/subjects/mail.ts'
import { ANYBODY, type MailSink, startMailSink } from '../../../test/sinks/mail.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'
import type { ChannelOutcome } from '../channel.ts'
import { createDial } from '../dial.ts'
import { type MxRecord, openDirectChannel } from './direct.ts'

type Places = Record<string, MailSink | undefined>

/** `mx`: by domain, or the code with which the resolver says no. */
function direct(mx: Record<string, MxRecord[] | string>, hosts: Places, clock: VirtualClock = virtualClock()) {
  const asked: string[] = []
  const connect = Object.fromEntries(
    Object.entries(hosts).map(([host, sink]) => [`smtp://${host}:25`, { host: '127.0.0.1', port: sink?.port ?? 1 }]),
  )
  const channel = openDirectChannel({
    dial: createDial({
      route: { connect },
      async lookup(name) {
        if (name === 'inside.example') return [{ address: '127.0.0.1', family: 4 }]
        throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
      },
    }),
    async resolveMx(domain) {
      asked.push(domain)
      const found = mx[domain] ?? 'ENOTFOUND'
      if (typeof found === 'string') throw Object.assign(new Error('no'), { code: found })
      return found
    },
    helo: 'carillon.example.com',
    clock,
    connectionsPerHost: 2,
    answerMs: 1_000,
  })
  onTestFinished(() => channel.close())
  return { asked, channel, sendTo: async (to: string) => (await channel.send([aMail({ to })]))[0] as ChannelOutcome }
}

async function aHost(name?: string): Promise<MailSink> {
  const sink = await startMailSink(name === undefined ? {} : { name })
  onTestFinished(() => sink.close())
  return sink
}

const record = (exchange: string, priority: number): MxRecord => ({ exchange, priority })

describe('mail to a domain', () => {
  test('goes to the host of the lowest preference, encrypted whatever its certificate says', async () => {
    const [first, second] = [await aHost('else.example'), await aHost()]
    const { sendTo } = direct(
      { 'a.example': [record('mx2.a.example', 20), record('MX1.a.example.', 5)] },
      { 'mx1.a.example': first, 'mx2.a.example': second },
    )
    expect(await sendTo('x@A.example')).toEqual({ kind: 'sent' })
    expect(first.received.map(({ recipients, isSecret }) => [recipients, isSecret])).toEqual([[['x@a.example'], true]])
    expect(second.met.size).toBe(0)
  })

  test('goes to the next host when one is not there or does not want it now', async () => {
    const [busy, third] = [await aHost(), await aHost()]
    busy.script(ANYBODY, { at: 'connect', fault: { say: '421 4.3.2 not now' } })
    const { sendTo } = direct(
      { 'a.example': [record('mx1.a.example', 1), record('mx2.a.example', 2), record('mx3.a.example', 3)] },
      { 'mx1.a.example': undefined, 'mx2.a.example': busy, 'mx3.a.example': third },
    )
    expect(await sendTo('x@a.example')).toEqual({ kind: 'sent' })
    expect(third.received).toHaveLength(1)
    // Those that were not to be had are left alone for a while.
    expect(await sendTo('y@a.example')).toEqual({ kind: 'sent' })
    expect(busy.met.get('connect')).toBe(1)
  })

  test('may be tried again when no host is there', async () => {
    const { sendTo } = direct({ 'a.example': [record('mx1.a.example', 1)] }, { 'mx1.a.example': undefined })
    expect(await sendTo('x@a.example')).toEqual({ kind: 'retry', reason: 'connection refused' })
  })

  test('is blocked, and nothing is wrong with our settings, when hosts refuse us', async () => {
    const host = await aHost()
    const { sendTo } = direct({ 'a.example': [record('mx1.a.example', 1)] }, { 'mx1.a.example': host })
    host.script(ANYBODY, { at: 'mail', fault: { say: '550 5.7.1 your network is listed' } })
    expect(await sendTo('x@a.example')).toEqual({ kind: 'failed', reason: 'blocked' })
    host.script(ANYBODY, { at: 'connect', fault: { say: '554 5.7.1 go away' } })
    const another = direct({ 'a.example': [record('mx1.a.example', 1)] }, { 'mx1.a.example': host })
    expect(await another.sendTo('x@a.example')).toEqual({ kind: 'failed', reason: 'blocked' })
  })

  test('that takes none, or is not there, is gone', async () => {
    const gone = { kind: 'gone', reason: 'hard_bounce' }
    const { sendTo, asked } = direct(
      { 'null.example': [record('', 0)], 'dot.example': [record('.', 0)], 'nothing.example': 'ENODATA' },
      {},
    )
    expect(await sendTo('x@null.example')).toEqual(gone)
    expect(await sendTo('x@dot.example')).toEqual(gone)
    expect(await sendTo('x@missing.example')).toEqual(gone)
    expect(await sendTo('x@nothing.example')).toEqual(gone)
    expect(await sendTo('not an address')).toEqual({ kind: 'gone', reason: 'not a valid address' })
    expect(asked).toHaveLength(4)
  })

  test('goes to the domain itself where it names no host', async () => {
    const host = await aHost()
    const { sendTo } = direct({ 'a.example': 'ENODATA', 'b.example': [] }, { 'a.example': host, 'b.example': host })
    expect(await sendTo('x@a.example')).toEqual({ kind: 'sent' })
    expect(await sendTo('x@b.example')).toEqual({ kind: 'sent' })
  })

  test('may be tried again when the resolver does not answer; it is asked anew then, and not while it is known', async () => {
    const host = await aHost()
    const mx: Record<string, MxRecord[] | string> = { 'a.example': 'ETIMEOUT' }
    const clock = virtualClock()
    const { sendTo, asked } = direct(mx, { 'mx1.a.example': host }, clock)
    expect(await sendTo('x@a.example')).toEqual({ kind: 'retry', reason: 'name not found' })
    mx['a.example'] = [record('mx1.a.example', 1)]
    for (const to of ['x@a.example', 'y@a.example']) expect(await sendTo(to)).toEqual({ kind: 'sent' })
    expect(asked).toHaveLength(2)
    clock.advance({ minutes: 6 })
    expect(await sendTo('z@a.example')).toEqual({ kind: 'sent' })
    expect(asked).toHaveLength(3)
  })

  test('never goes to addresses inside, whatever the domain says', async () => {
    const { sendTo } = direct({ 'a.example': [record('inside.example', 1)], '127.0.0.1': 'ENODATA' }, {})
    expect(await sendTo('x@a.example')).toEqual({ kind: 'failed', reason: 'address not allowed' })
    expect(await sendTo('x@127.0.0.1')).toMatchObject({ kind: 'failed', reason: 'address not allowed' })
  })

  test.each(['421 4.7.0 try later', '451 4.3.0 busy'])(
    'of one inbox provider goes out more slowly after %s, and that of the others as before',
    async (text) => {
      const [first, second, other] = [await aHost(), await aHost(), await aHost()]
      const clock = virtualClock()
      const { channel } = direct(
        {
          'a.example': [record('mx.a.example', 1)],
          'b.example': [record('mx.b.example', 1)],
          'c.example': [record('mx.c.example', 1)],
        },
        { 'mx.a.example': first, 'mx.b.example': second, 'mx.c.example': other },
        clock,
      )
      const send = async (to: string, lane: string) =>
        (await channel.send([aMail({ to, inboxProvider: lane })]))[0] as ChannelOutcome
      first.script('x@a.example', { at: 'rcpt', fault: { say: text } })
      expect(await send('x@a.example', 'google_workspace')).toEqual({ kind: 'retry', reason: 'slow down' })
      // Of another domain, on another host, of the same provider.
      const slowed = await send('y@b.example', 'google_workspace')
      expect(slowed).toEqual({ kind: 'retry', reason: 'slowed', afterMs: expect.any(Number), wasNotAttempted: true })
      expect(second.met.size).toBe(0)
      expect(await send('z@c.example', 'microsoft')).toEqual({ kind: 'sent' })
      clock.advance({ ms: (slowed as { afterMs: number }).afterMs })
      expect(await send('y@b.example', 'google_workspace')).toEqual({ kind: 'sent' })
    },
  )

  test('that is slow holds up its own alone', async () => {
    const [slow, fast] = [await aHost(), await aHost()]
    const { channel } = direct(
      { 'a.example': [record('mx.a.example', 1)], 'b.example': [record('mx.b.example', 1)] },
      { 'mx.a.example': slow, 'mx.b.example': fast },
    )
    for (let n = 0; n < 2; n++) slow.script(ANYBODY, { at: 'hello', fault: 'hang' })
    const stuck = channel.send(Array.from({ length: 300 }, (_, n) => aMail({ to: `x${n}@a.example` })))
    let isStuck = true
    stuck.then(() => {
      isStuck = false
    })
    const outcomes = await channel.send(Array.from({ length: 20 }, (_, n) => aMail({ to: `x${n}@b.example` })))
    expect(outcomes.every(({ kind }) => kind === 'sent')).toBe(true)
    expect(isStuck).toBe(true)
    expect(new Set((await stuck).map(({ kind }) => kind))).toEqual(new Set(['retry']))
  })
})

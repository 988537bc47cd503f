// What every channel promises (src/channels/channel.ts), tried on each against a stand-in of its provider.

import { describe, expect, onTestFinished, test } from 'vitest'
import type { Channel, ChannelOutcome } from '../../src/channels/channel.ts'
import type { Scripted } from '../sinks/scripted.ts'

export type Subject<Item, Trouble> = {
  provider: Scripted<Trouble>
  /** Waits `deadlineMs` for an answer. */
  channel: Channel<Item>
  /** Lets go of what the channel was given and did not open itself. */
  close?(): Promise<void>
  /** Each with an address of its own. */
  item(): Item
  /** What the provider knows it by. */
  addressOf(item: Item): string
  /** What no reason may hold. */
  secretsOf(item: Item): string[]
  /** Items with which something is wrong in itself. */
  broken(): Item[]
  /** All that was logged. */
  logged?(): string
}

export type StartOptions = { deadlineMs: number; maxStreams?: number }

/** How the provider goes wrong, in its own words, by what follows from it. */
export type Troubles<Trouble> = {
  /** Refused for now. */
  busy: Trouble
  refused: Trouble
  gone: Trouble
  /** Taken up, and no whole answer. */
  lost: Trouble[]
  /** Not taken up, and no answer: of HTTP/2. */
  untouched?: Trouble[]
  /** Those before it are answered, those after it not taken up: of HTTP/2. */
  goodbyes?: Trouble[]
  /** Refused for now, and for how long. */
  pauses?: [Trouble, afterMs: number][]
  /** Whatever else it may say; the last of them repeats secrets. */
  noise(secrets: string): Trouble[]
}

export function describeContract<Item, Trouble>(
  name: string,
  troubles: Troubles<Trouble>,
  start: (options: StartOptions) => Promise<Subject<Item, Trouble>>,
) {
  const { busy, refused, gone, lost, untouched = [], goodbyes = [], pauses = [], noise } = troubles
  const started = async (options: Partial<StartOptions> = {}) => {
    const subject = await start({ deadlineMs: 10_000, ...options })
    onTestFinished(async () => {
      await subject.channel.close()
      await subject.close?.()
      await subject.provider.close()
    })
    return subject
  }
  const many = <It>(count: number, make: () => It) => Array.from({ length: count }, make)

  describe(`${name} as a channel`, () => {
    test('tells of each item what became of it, in their order, and hands each over once', async () => {
      const { provider, channel, item, addressOf } = await started({ maxStreams: 20 })
      const items = many(120, item)
      for (const [n, it] of items.entries()) if (n % 3 === 0) provider.script(addressOf(it), busy)
      const outcomes = await channel.send(items)
      expect(outcomes.map(({ kind }) => kind)).toEqual(items.map((_, n) => (n % 3 === 0 ? 'retry' : 'sent')))
      for (const [n, it] of items.entries())
        expect(provider.taken.get(addressOf(it)) ?? 0, `${n}`).toBe(n % 3 === 0 ? 0 : 1)
      expect(await channel.send([])).toEqual([])
    })

    test('hands each over once when several calls are under way', async () => {
      const { provider, channel, item, addressOf } = await started()
      const calls = many(3, () => many(100, item))
      const outcomes = await Promise.all(calls.map((items) => channel.send(items)))
      expect(new Set(outcomes.flat().map(({ kind }) => kind))).toEqual(new Set(['sent']))
      expect(calls.flat().map((it) => provider.taken.get(addressOf(it)))).toEqual(Array(300).fill(1))
    })

    test('tells what is refused for good from an address that leads nowhere', async () => {
      const { provider, channel, item, addressOf } = await started()
      const [bad, dead, fine] = [item(), item(), item()]
      provider.script(addressOf(bad), refused)
      provider.script(addressOf(dead), gone)
      expect(await channel.send([bad, dead, fine])).toMatchObject([
        { kind: 'failed' },
        { kind: 'gone' },
        { kind: 'sent' },
      ])
    })

    test.each(lost)('does not know what became of it after: %s', async (trouble) => {
      const { provider, channel, item, addressOf } = await started({ deadlineMs: 1_000 })
      const [it, next] = [item(), item()]
      provider.script(addressOf(it), trouble)
      expect(await channel.send([it])).toEqual([{ kind: 'unknown', reason: expect.any(String) }])
      expect(provider.taken.get(addressOf(it))).toBe(1)
      expect(await channel.send([next])).toMatchObject([{ kind: 'sent' }])
    })

    test.each(untouched)('tries again at once after %s: the provider has not taken it up', async (trouble) => {
      const { provider, channel, item, addressOf } = await started()
      await channel.send([item()])
      const it = item()
      provider.script(addressOf(it), trouble)
      expect(await channel.send([it])).toMatchObject([{ kind: 'sent' }])
      expect(provider.taken.get(addressOf(it))).toBe(1)
    })

    test.each(untouched)('may try again later after %s, twice', async (trouble) => {
      const { provider, channel, item, addressOf } = await started()
      await channel.send([item()])
      const it = item()
      provider.script(addressOf(it), trouble, trouble)
      expect(await channel.send([it])).toEqual([{ kind: 'retry', reason: expect.any(String) }])
      expect(provider.taken.get(addressOf(it))).toBeUndefined()
      expect(await channel.send([it])).toMatchObject([{ kind: 'sent' }])
      expect(provider.taken.get(addressOf(it))).toBe(1)
    })

    test.each(goodbyes)('hands each over once, wherever the provider says %s', async (trouble) => {
      const { provider, channel, item, addressOf } = await started()
      await channel.send([item()])
      const items = many(150, item)
      provider.script(addressOf(items[70] as Item), trouble)
      const outcomes = await channel.send(items)
      expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['sent']))
      expect(items.map((it) => provider.taken.get(addressOf(it)))).toEqual(Array(150).fill(1))
    })

    test('may try again when nobody is there', async () => {
      const { provider, channel, item } = await started()
      await provider.close()
      expect(await channel.send([item(), item()])).toMatchObject([{ kind: 'retry' }, { kind: 'retry' }])
    })

    test.each(pauses)('passes on how long the provider wants to be left alone: %#', async (trouble, afterMs) => {
      const { provider, channel, item, addressOf } = await started()
      const it = item()
      provider.script(addressOf(it), trouble)
      expect(await channel.send([it])).toMatchObject([{ kind: 'retry', afterMs }])
    })

    test('never rejects, and one broken item does not spoil the others', async () => {
      const { channel, item, broken } = await started()
      for (const [n, bad] of broken().entries()) {
        const [before, outcome, after] = await channel.send([item(), bad, item()])
        expect([before?.kind, after?.kind]).toEqual(['sent', 'sent'])
        expect(['gone', 'failed', 'misconfigured'], `broken item ${n}: ${outcome?.kind}`).toContain(outcome?.kind)
      }
    })

    test('keeps credentials, addresses and contents out of its reasons and its log', async () => {
      const { provider, channel, item, addressOf, secretsOf, broken, logged } = await started({ deadlineMs: 1_000 })
      const outcomes: ChannelOutcome[] = []
      const secrets: string[] = []
      const look = async (it: Item) => {
        secrets.push(...secretsOf(it))
        outcomes.push(...(await channel.send([it])))
      }
      for (const it of broken()) await look(it)
      const count = noise('').length + lost.length + untouched.length
      for (let n = 0; n < count; n++) {
        const it = item()
        const trouble = [...noise(secretsOf(it).join(' ')), ...lost, ...untouched][n] as Trouble
        provider.script(addressOf(it), trouble, trouble)
        await look(it)
      }
      const text = JSON.stringify(outcomes) + (logged?.() ?? '')
      for (const secret of secrets) expect(text.includes(secret), 'a secret in a reason').toBe(false)
      const reasons = outcomes.flatMap((outcome) => ('reason' in outcome ? [outcome.reason] : []))
      expect(reasons.length).toBe(outcomes.length)
      for (const reason of reasons) expect(reason).toMatch(/^[\w .,:/-]{3,60}$/)
    })

    test('waits for what is under way when it closes; what comes later may be tried again', async () => {
      const { channel, close, item, provider } = await started({ maxStreams: 5 })
      await channel.send([item()])
      let settled: ChannelOutcome[] | undefined
      channel.send(many(100, item)).then((outcomes) => {
        settled = outcomes
      })
      await channel.close()
      expect(new Set(settled?.map(({ kind }) => kind))).toEqual(new Set(['sent']))
      const before = provider.requests()
      expect(before).toBe(101)
      expect(await channel.send([item()])).toMatchObject([{ kind: 'retry' }])
      expect(provider.requests()).toBe(before)
      await close?.()
      await expect.poll(() => provider.open()).toBe(0)
    })
  })
}

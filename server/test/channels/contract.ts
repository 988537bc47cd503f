// What every channel promises (src/channels/channel.ts), tried on each against a stand-in of its provider.

import { describe, expect, onTestFinished, test } from 'vitest'
import type { Channel, Outcome } from '../../src/channels/channel.ts'
import type { Failure, Provider } from '../sinks/provider.ts'

export type Subject<Item> = {
  provider: Provider
  /** Waits `deadlineMs` for an answer. */
  channel: Channel<Item>
  /** Each with an address of its own. */
  item(): Item
  /** What the provider knows it by. */
  addressOf(item: Item): string
  /** What no reason may hold. */
  secretsOf(item: Item): string[]
  /** Items with which something is wrong in itself. */
  broken(): Item[]
}

export type StartOptions = { deadlineMs: number; maxStreams?: number }

export function describeContract<Item>(name: string, start: (options: StartOptions) => Promise<Subject<Item>>) {
  const started = async (options: Partial<StartOptions> = {}) => {
    const subject = await start({ deadlineMs: 10_000, ...options })
    onTestFinished(async () => {
      await subject.channel.close()
      await subject.provider.close()
    })
    return subject
  }
  const many = <It>(count: number, make: () => It) => Array.from({ length: count }, make)

  describe(`${name} as a channel`, () => {
    test('tells of each item what became of it, in their order, and hands each over once', async () => {
      const { provider, channel, item, addressOf } = await started({ maxStreams: 20 })
      const items = many(120, item)
      for (const [n, it] of items.entries()) if (n % 3 === 0) provider.script(addressOf(it), { status: 503 })
      const outcomes = await channel.send(items)
      expect(outcomes.map(({ kind }) => kind)).toEqual(items.map((_, n) => (n % 3 === 0 ? 'retry' : 'sent')))
      for (const [n, it] of items.entries())
        expect(provider.taken.get(addressOf(it)) ?? 0, `${n}`).toBe(n % 3 === 0 ? 0 : 1)
      expect(await channel.send([])).toEqual([])
    })

    test.each(['reset', 'cut', 'half', 'hang'] as const)(
      'does not know what became of it after %s',
      async (failure) => {
        const { provider, channel, item, addressOf } = await started({ deadlineMs: 1_000 })
        const [it, next] = [item(), item()]
        provider.script(addressOf(it), failure)
        expect(await channel.send([it])).toEqual([{ kind: 'unknown', reason: expect.any(String) }])
        expect(provider.taken.get(addressOf(it))).toBe(1)
        expect(await channel.send([next])).toMatchObject([{ kind: 'sent' }])
      },
    )

    test.each(['refuse', 'goaway'] as const)(
      'may try again after %s: the provider has not taken it up',
      async (failure) => {
        const { provider, channel, item, addressOf } = await started()
        await channel.send([item()])
        const it = item()
        provider.script(addressOf(it), failure)
        expect(await channel.send([it])).toEqual([{ kind: 'retry', reason: expect.any(String) }])
        expect(provider.taken.get(addressOf(it))).toBeUndefined()
        expect(await channel.send([it])).toMatchObject([{ kind: 'sent' }])
        expect(provider.taken.get(addressOf(it))).toBe(1)
      },
    )

    test('says retry of nothing that was taken up, wherever the provider says goodbye', async () => {
      const { provider, channel, item, addressOf } = await started()
      await channel.send([item()])
      const items = many(150, item)
      provider.script(addressOf(items[70] as Item), 'goaway')
      const outcomes = await channel.send(items)
      for (const [n, { kind }] of outcomes.entries()) {
        const taken = provider.taken.get(addressOf(items[n] as Item)) ?? 0
        if (kind === 'sent') expect(taken, `${n}`).toBe(1)
        else {
          expect(kind, `${n}`).toBe('retry')
          expect(taken, `${n}`).toBe(0)
        }
      }
      expect(outcomes[70]).toMatchObject({ kind: 'retry' })
    })

    test('may try again when nobody is there', async () => {
      const { provider, channel, item } = await started()
      await provider.close()
      expect(await channel.send([item(), item()])).toMatchObject([{ kind: 'retry' }, { kind: 'retry' }])
    })

    test('passes on how long the provider wants to be left alone', async () => {
      const { provider, channel, item, addressOf } = await started()
      const [busy, down] = [item(), item()]
      provider.script(addressOf(busy), { status: 429, headers: { 'retry-after': '7' } })
      provider.script(addressOf(down), { status: 503, headers: { 'retry-after': '120' } })
      expect(await channel.send([busy, down])).toMatchObject([
        { kind: 'retry', afterMs: 7_000 },
        { kind: 'retry', afterMs: 120_000 },
      ])
    })

    test('never rejects, and one broken item does not spoil the others', async () => {
      const { channel, item, broken } = await started()
      const bad = broken()
      const outcomes = await channel.send(bad.flatMap((it) => [item(), it]))
      expect(outcomes).toHaveLength(2 * bad.length)
      for (const [n, { kind }] of outcomes.entries()) {
        if (n % 2 === 0) expect(kind).toBe('sent')
        else expect(['gone', 'failed', 'misconfigured'], `broken item ${(n - 1) / 2}: ${kind}`).toContain(kind)
      }
    })

    test('keeps credentials and addresses out of its reasons', async () => {
      const { provider, channel, item, addressOf, secretsOf, broken } = await started({ deadlineMs: 1_000 })
      const failures: Failure[] = ['reset', 'refuse', 'hang', 'half']
      for (const status of [302, 400, 401, 403, 404, 410, 413, 429, 500, 503]) failures.push({ status })
      const items = [...broken(), ...failures.map(item)]
      for (const [n, it] of items.slice(-failures.length).entries())
        provider.script(addressOf(it), failures[n] as Failure, failures[n] as Failure)
      // An answer that says back all that it was told.
      const telling = item()
      const echo = {
        status: 400,
        body: JSON.stringify({ reason: secretsOf(telling).join(' '), error: { status: secretsOf(telling).join() } }),
      }
      provider.script(addressOf(telling), echo)
      const outcomes = await channel.send([...items, telling])
      const text = JSON.stringify(outcomes)
      for (const it of [...items, telling])
        for (const secret of secretsOf(it)) expect(text.includes(secret), 'a secret in a reason').toBe(false)
      const reasons = outcomes.flatMap((outcome: Outcome) => ('reason' in outcome ? [outcome.reason] : []))
      expect(reasons.length).toBe(outcomes.length)
      for (const reason of reasons) expect(reason).toMatch(/^[\w .,:/-]{3,60}$/)
    })

    test('waits for what is under way when it closes; what comes later may be tried again', async () => {
      const { channel, item, provider } = await started({ maxStreams: 5 })
      const outcomes = channel.send(many(100, item))
      await channel.close()
      expect(new Set((await outcomes).map(({ kind }) => kind))).toEqual(new Set(['sent']))
      expect(await channel.send([item()])).toMatchObject([{ kind: 'retry' }])
      await expect.poll(() => provider.open()).toBe(0)
    })
  })
}

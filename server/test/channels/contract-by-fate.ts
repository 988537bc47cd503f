// What every channel promises (channels/channel.ts), told against a stand-in for its provider. Each channel brings a rig: how to
// make items that the stand-in treats in a certain way.

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Channel, Outcome } from '../../src/channels/channel.ts'

export type Fate =
  /** Taken. */
  | 'taken'
  /** Refused for now. */
  | 'busy'
  /** Refused for good. */
  | 'refused'
  /** The address leads nowhere any more. */
  | 'gone'
  /** Read to its end, and then the connection breaks. */
  | 'lost'
  /** Taken, but only once `release` was called. */
  | 'held'

/** For channels whose addresses are phone numbers. */
export const NUMBERS: Record<Fate, string> = {
  taken: '+15005550001',
  busy: '+15005550002',
  refused: '+15005550003',
  gone: '+15005550009',
  lost: '+15005550005',
  held: '+15005550006',
}

export type Rig<Item> = {
  channel: Channel<Item>
  item(fate: Fate): Item
  /** How many items of this fate the stand-in has read. */
  arrived(fate: Fate): number
  release(): void
  /** What a reason or a log line must never hold: secrets, addresses, contents. */
  markers: readonly string[]
  /** All that was logged. */
  logged?(): string
  stop(): Promise<void>
}

export type ContractOf<Item> = {
  open(): Promise<Rig<Item>>
  /** The same channel, with nobody at the other end. */
  openToNobody(): Promise<{ channel: Channel<Item>; item: Item }>
  /** Items that no caller should pass, and that must do no harm. */
  strange: readonly Item[]
}

const EXPECTED: Record<Exclude<Fate, 'held'>, Outcome['kind']> = {
  taken: 'sent',
  busy: 'retry',
  refused: 'failed',
  gone: 'gone',
  lost: 'unknown',
}

export function testContract<Item>(name: string, { open, openToNobody, strange }: ContractOf<Item>) {
  describe(`${name} keeps the contract of channels`, () => {
    let rig: Rig<Item>
    beforeAll(async () => {
      rig = await open()
    })
    afterAll(() => rig.stop())

    const kinds = async (channel: Channel<Item>, items: readonly Item[]) => {
      const outcomes = await channel.send(items)
      for (const outcome of outcomes) expectClean(outcome)
      return outcomes.map(({ kind }) => kind)
    }
    function expectClean(outcome: Outcome) {
      if (!('reason' in outcome)) return
      expect(outcome.reason).toMatch(/^[\w ,-]{1,60}$/)
      for (const marker of rig.markers) expect(outcome.reason).not.toContain(marker)
    }

    test.each(Object.entries(EXPECTED))('what is %s is told as %s', async (fate, expected) => {
      const before = rig.arrived(fate as Fate)
      expect(await kinds(rig.channel, [rig.item(fate as Fate)])).toEqual([expected])
      expect(rig.arrived(fate as Fate)).toBe(before + 1)
    })

    test('one outcome for each item, in their order', async () => {
      const fates = ['taken', 'refused', 'gone', 'taken', 'gone', 'refused', 'taken', 'taken', 'refused'] as const
      const expected = fates.map((fate) => EXPECTED[fate])
      expect(await kinds(rig.channel, fates.map(rig.item))).toEqual(expected)
      expect(await kinds(rig.channel, [...fates].reverse().map(rig.item))).toEqual(expected.toReversed())
      expect(await rig.channel.send([])).toEqual([])
    })

    test('hundreds of items, in calls at once, each arrive once', async () => {
      const before = rig.arrived('taken')
      const items = Array.from({ length: 100 }, () => rig.item('taken'))
      const outcomes = await Promise.all([1, 2, 3].map(() => rig.channel.send(items)))
      expect(outcomes.flat().every(({ kind }) => kind === 'sent')).toBe(true)
      expect(rig.arrived('taken')).toBe(before + 300)
    })

    test('strange items do no harm, to themselves or to others', async () => {
      const outcomes = await kinds(rig.channel, [...strange, rig.item('taken')])
      expect(outcomes).toHaveLength(strange.length + 1)
      expect(outcomes.at(-1)).toBe('sent')
      for (const kind of outcomes.slice(0, -1)) expect(['sent', 'failed', 'gone']).toContain(kind)
    })

    test('with nobody at the other end it may be tried again', async () => {
      const { channel, item } = await openToNobody()
      expect(await kinds(channel, [item, item])).toEqual(['retry', 'retry'])
      await channel.close()
    })

    test('closing waits for what is under way, and nothing goes out afterwards', async () => {
      const own = await open()
      const before = own.arrived('held')
      const sending = own.channel.send([own.item('held')])
      await vi.waitFor(() => expect(own.arrived('held')).toBe(before + 1))
      let isClosed = false
      const closed = own.channel.close().then(() => {
        isClosed = true
      })
      await new Promise((resolve) => setTimeout(resolve, 20))
      expect(isClosed).toBe(false)
      own.release()
      expect(await sending).toMatchObject([{ kind: 'sent' }])
      await closed
      const taken = own.arrived('taken')
      expect(await kinds(own.channel, [own.item('taken')])).toEqual(['retry'])
      expect(own.arrived('taken')).toBe(taken)
      await own.stop()
    })

    test('neither secrets nor addresses are logged', () => {
      const logged = rig.logged?.() ?? ''
      for (const marker of rig.markers) expect(logged).not.toContain(marker)
    })
  })
}

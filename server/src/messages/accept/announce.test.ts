import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { aPushUser } from '../../../test/messages.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { createQueue } from '../../queue/enqueue.ts'
import { claimJobs } from '../../queue/store.ts'
import { createMerger } from '../../storage/merge.ts'
import type { NewMessage } from '../message.ts'
import { createInsertMessage, type InsertMessage } from './insert-messages.ts'
import { subscriptionTypesFor } from './platforms.ts'

const clock = virtualClock('2030-01-01T09:00:00.000Z')
const inSeconds = (seconds: number) => new Date(clock.now().getTime() + seconds * 1000)
let app: TestApp
let accept: InsertMessage
let subscriptionId: string
/** How many jobs workers were told of, each time that they were. */
let announced: number[] = []

beforeAll(async () => {
  app = await testApp({ clock })
  const { subscriptionIds } = await aPushUser(app)
  subscriptionId = subscriptionIds[0] as string
  const queue = {
    ...createQueue({ clock, newId }),
    announce: async (_: unknown, jobs: readonly unknown[]) => void announced.push(jobs.length),
  }
  const merger = createMerger({ slots: 1 })
  accept = createInsertMessage({ db: app.db, now: () => clock.now(), queue, isDisabled: async () => false, merger })
})
afterAll(() => app.close())

/** What workers were told while messages for these times, or for now, were accepted at once. */
async function told(...times: Date[]) {
  announced = []
  const message: Omit<NewMessage, 'id' | 'sendAfter'> = {
    channel: 'push',
    kind: 1,
    isListed: true,
    lane: 'direct',
    name: null,
    templateId: null,
    audience: { kind: 'subscriptions', field: 'include_subscription_ids', given: [], ids: [subscriptionId] },
    content: { contents: { en: 'Hello' } },
    emailHtml: null,
    options: { ttl: 60, priority: 10 },
  }
  const types = subscriptionTypesFor('push', undefined)
  const accepted = await Promise.all(
    times.map((sendAfter) =>
      accept(app.tenant.id, {
        message: { ...message, id: newId(), sendAfter },
        types,
        targets: [{ subscriptionId }],
        keys: [],
        requestHash: '',
      }),
    ),
  )
  expect(accepted.map((it) => it?.recipients)).toEqual(times.map(() => 1))
  return announced
}

test('workers are told of the job of direct messages once, until they have taken it', async () => {
  const now = clock.now()
  expect(await told(now, now)).toEqual([1])
  expect(await told(now)).toEqual([])
  const claim = { lane: 'direct' as const, now, leaseUntil: inSeconds(30), limit: 10, maxCrashes: 5, crowded: [] }
  expect(await claimJobs(app.db, app.tenant.id, claim)).toHaveLength(1)
  expect(await told(now)).toEqual([1])
})

test('each message for later has a job that they are told of, also behind one that waits', async () => {
  const now = clock.now()
  expect(await told(inSeconds(2))).toEqual([1])
  expect(await told(now, inSeconds(3))).toEqual([2])
})

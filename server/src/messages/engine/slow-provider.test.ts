import { afterEach, expect, test } from 'vitest'
import type { TestApp } from '../../../test/app.ts'
import {
  aMessage,
  anEngine,
  anEngineWorker,
  type FakeSender,
  only,
  recipients,
  setStage,
  tally,
} from '../../../test/engine.ts'
import type { ChannelOutcome } from '../../channels/channel.ts'
import type { VirtualClock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import { sql } from '../../storage/sql.ts'
import { BATCH_SIZE } from '../deliver/batch.ts'
import { DELIVER } from '../jobs.ts'
import { lanes } from '../message.ts'
import type { Engine } from './types.ts'

let app: TestApp
let clock: VirtualClock
let sender: FakeSender
let engine: Engine
let appId: AppId
let end = async () => {}

/** Few places, so that there is much more to send than there are, in all lines of the app. */
const IN_FLIGHT = 20
const MUCH = 4 * BATCH_SIZE

setStage((stage) => {
  ;({ app, clock, sender, appId } = stage)
  engine = anEngine({ db: stage.engine.db, clock, sender, maxInFlight: IN_FLIGHT })
})
afterEach(() => end())

async function until(isSo: () => boolean | Promise<boolean>) {
  for (let i = 0; !(await isSo()); i++) {
    if (i > 2_000) throw new Error('waited in vain')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

type Channel = 'sms' | 'email' | 'push'
const channels: readonly Channel[] = ['sms', 'email', 'push']
const contents = {
  sms: { contents: { en: 'Bells' } },
  push: { contents: { en: 'Bells' } },
  email: { email_subject: 'Bells', email_body: '<p>Bells</p>' },
}
const types = { sms: 'SMS', email: 'Email', push: 'iOSPush' } as const

/** To as many in each lane. Answers the messages. */
async function write(of: AppId, channel: Channel, count = MUCH): Promise<string[]> {
  const people = await recipients(engine, of, count, { type: types[channel] })
  const audience = only(...people.map(({ id }) => id))
  return Promise.all(lanes.map((lane) => aMessage(engine, of, { lane, channel, content: contents[channel], audience })))
}

const expectSent = async (of: AppId, channel: Channel) => {
  for (const id of await write(of, channel, BATCH_SIZE))
    await until(async () => (await tally(app.db, of, id)).sent === BATCH_SIZE)
}

/** In which one of its lines is being worked through. */
const busyLanesOf = async (of: AppId) =>
  (
    await app.db.query(sql`
      select distinct lane from jobs where app_id = ${of} and name = ${DELIVER} and state = 'running'`)
  ).length

const underWay = async (of: AppId, id: string) => (await tally(app.db, of, id)).sending ?? 0

/** A worker that works all the time; what it brings for these apps is never answered. */
function hangFor(apps: ReadonlySet<AppId>) {
  const { promise: thawed, resolve: thaw } = Promise.withResolvers<ChannelOutcome>()
  const { send } = sender
  sender.send = (of, provider, messages) =>
    apps.has(of) ? Promise.all(messages.map(() => thawed)) : send(of, provider, messages)
  const worker = anEngineWorker(engine, { timing: { sweepMs: 20 } })
  worker.start()
  end = async () => {
    const stopped = worker.stop()
    thaw({ kind: 'unknown', reason: 'timeout' })
    await stopped
  }
}

test.each(channels)('%s of an app that is answered nothing holds up none of another app', async (channel) => {
  hangFor(new Set([appId]))
  const ids = await write(appId, channel)
  await until(() => engine.slots.stats().inFlight === IN_FLIGHT)
  await expectSent((await app.anotherTenant()).id, channel)
  const counts = await Promise.all(ids.map((id) => underWay(appId, id)))
  expect(counts.reduce((sum, count) => sum + count)).toBe(IN_FLIGHT)
})

test.each(channels)('%s of many apps that answer to nothing hold up no other app', async (channel) => {
  const apps = new Set<AppId>()
  hangFor(apps)
  for (let n = 0; n < 5; n++) {
    const { id: of } = await app.anotherTenant()
    apps.add(of)
    await write(of, channel)
    await until(async () => (await busyLanesOf(of)) === lanes.length)
  }
  await expectSent(appId, channel)
})

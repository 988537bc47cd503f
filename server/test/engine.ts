// Makers for tests about what happens to messages after they were accepted: an engine with a sender that does as it is told, on
// the database of a server, and messages put straight into it.

import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import type { ChannelOutcome } from '../src/channels/channel.ts'
import { createMessageChannels } from '../src/composition/message-channels.ts'
import { createReferences } from '../src/email/reference.ts'
import { type Clock, type VirtualClock, virtualClock } from '../src/lib/clock.ts'
import { type AppId, newId } from '../src/lib/ids.ts'
import { createLog } from '../src/lib/log.ts'
import { findMiscounts } from '../src/messages/counts/store.ts'
import { type Provider, providers } from '../src/messages/delivery.ts'
import type { EmailPort } from '../src/messages/email/port.ts'
import { createEngine } from '../src/messages/engine/engine.ts'
import { messageHandlers } from '../src/messages/engine/handlers.ts'
import type { DeliverySender, Engine } from '../src/messages/engine/types.ts'
import { closeJob, DIRECT, expandJob } from '../src/messages/jobs.ts'
import type { Audience, Message, MessageOptions } from '../src/messages/message.ts'
import type { OutgoingMessage } from '../src/messages/outgoing-message.ts'
import { createQueue } from '../src/queue/enqueue.ts'
import { createWorker, type WorkerOptions } from '../src/queue/work.ts'
import { createScanAudience, type ScanAudience } from '../src/segments/scan.ts'
import { defaultSegments } from '../src/segments/segment.ts'
import { createPool, type Db, type Pool } from '../src/storage/db.ts'
import type { SharedPool } from '../src/storage/shared-pool.ts'
import { rows, sql } from '../src/storage/sql.ts'
import type { Renderer } from '../src/templates/render/renderer.ts'
import { createRenderer } from '../src/templates/render/renderer.ts'
import { hashToken, type SubscriptionType } from '../src/users/subscriptions/subscription.ts'
import { type Tenant, type TestApp, type TestAppOptions, testApp } from './app.ts'

export type Call = { provider: Provider; outgoing: OutgoingMessage }

export type FakeSender = DeliverySender & {
  /** What it was asked to bring, in order. */
  calls: Call[]
  /** The next messages to this address end so, one after the other; then they are sent. */
  script(token: string, ...outcomes: ChannelOutcome[]): void
  /** Decides about everything that has no script. */
  otherwise: (call: Call) => ChannelOutcome | Promise<ChannelOutcome>
  ready: DeliverySender['ready']
}

const SENT: ChannelOutcome = { kind: 'sent' }

export function fakeSender(): FakeSender {
  const scripts = new Map<string, ChannelOutcome[]>()
  const sender: FakeSender = {
    calls: [],
    script: (token, ...outcomes) => scripts.set(token, [...(scripts.get(token) ?? []), ...outcomes]),
    otherwise: () => SENT,
    ready: async () => new Set(providers),
    send: (_appId, { provider }, messages) =>
      Promise.all(
        messages.map((outgoing) => {
          const call = { provider, outgoing }
          sender.calls.push(call)
          return scripts.get(outgoing.token)?.shift() ?? sender.otherwise(call)
        }),
      ),
  }
  return sender
}

/** None is started before something is to be rendered. */
let renderer: Renderer | undefined
export function theRenderer(): Renderer {
  renderer ??= createRenderer({})
  return renderer
}
/** The next file of this process gets another one. */
export async function closeRenderer() {
  const open = renderer
  renderer = undefined
  await open?.close()
}

/** Reads and writes the references of emails that the engines of these tests send. */
export const testReferences = createReferences('the secret of the tests')

/** Every domain may send, and email leads nowhere. */
export const anEmailPort = (): EmailPort => ({
  references: testReferences,
  findSendingDomain: async (_appId, domain) => ({
    domain,
    returnPathHost: `bounces.${domain}`,
    trackingUrl: 'https://track.example.com',
    dkim: [],
  }),
  defaultFrom: async () => ({ name: 'Bells', address: 'bells@example.com' }),
  findDevelopmentMailbox: async () => undefined,
  referenceHeaders: async () => [],
  findInboxProviders: async (addresses) =>
    addresses.map((address) => (address.endsWith('@gmail.com') ? 'gmail' : 'other')),
  lookUpMailHosts: async () => {},
  fetchAttachments: async () => [],
})

export type Bench = {
  db: Db
  clock: Clock
  sender: DeliverySender
  maxInFlight?: number
  email?: EmailPort
  scanAudience?: ScanAudience
}

/** Whoever comes gets a connection at once. */
export const unshared = (db: Db): SharedPool => ({ use: (_appId, run) => run(db) })

export function anEngine(bench: Bench): Engine {
  const { db, clock, sender, maxInFlight = 200, email = anEmailPort() } = bench
  return createEngine({
    db,
    directDb: db,
    scanAudience: bench.scanAudience ?? createScanAudience(unshared(db)),
    clock,
    sender,
    renderer: theRenderer(),
    channels: createMessageChannels(email),
    maxInFlight,
    log: createLog('error'),
    random: () => 1,
  })
}

export type Stage = {
  app: TestApp
  clock: VirtualClock
  sender: FakeSender
  engine: Engine
  appId: AppId
  tenant: Tenant
}

/** As patient as the one of a server's workers: machines of tests are slow. */
const aWorkerPool = ({ connection }: TestApp) =>
  createPool({ connection, size: 10, statementTimeoutMs: 300_000, connectTimeoutMs: 60_000 })

/** A server and a clock for the file; a sender, an engine and an app for each test. `onSet` hands them over. */
export function setStage(onSet: (stage: Stage) => void, options: TestAppOptions = {}): void {
  const clock = virtualClock()
  let app: TestApp
  let workerDb: Pool
  beforeAll(async () => {
    app = await testApp({ clock, ...options })
    workerDb = aWorkerPool(app)
  })
  afterAll(async () => {
    await workerDb.close()
    await app.close()
    await closeRenderer()
  })
  beforeEach(async () => {
    const sender = fakeSender()
    const engine = anEngine({ db: workerDb, clock, sender })
    const tenant = await app.anotherTenant()
    onSet({ app, clock, sender, engine, appId: tenant.id, tenant })
  })
}

/** Of one process: what it has begun ends with it, or never. */
export const anEngineWorker = (engine: Engine, options: Partial<WorkerOptions> = {}) =>
  createWorker({ db: engine.db, clock: engine.clock, log: engine.log, handlers: messageHandlers(engine), ...options })

/** Do all that is due now, and what that makes due. */
export const runEngine = (engine: Engine) => anEngineWorker(engine).runDue()

export type MessageDraft = Partial<Pick<Message, 'channel' | 'lane' | 'audience' | 'content' | 'sendAfter'>> & {
  options?: Partial<MessageOptions>
}

/** Put there as if it had been accepted. */
export async function aMessage(
  engine: Pick<Engine, 'db' | 'clock'>,
  appId: AppId,
  draft: MessageDraft,
): Promise<string> {
  const { db, clock } = engine
  const id = newId()
  const now = clock.now()
  const {
    channel = 'push',
    lane = 'bulk',
    audience = everybodyOf(appId),
    content = { contents: { en: 'Bells' } },
  } = draft
  const sendAfter = draft.sendAfter ?? now
  const options = { ttl: 259_200, priority: 10, ...draft.options }
  await db.transaction(async (db) => {
    await db.query(sql`
      insert into messages (app_id, id, channel, lane, audience, content, options, queued_at, send_after)
      values (${appId}, ${id}, ${channel}, ${lane}, ${audience}, ${content}, ${options}, ${now}, ${sendAfter})`)
    const job =
      lane === 'direct' && sendAfter <= now ? expandJob(appId, DIRECT) : expandJob(appId, { id, lane }, sendAfter)
    await createQueue({ clock, newId }).enqueue(db, [job])
  })
  return id
}

const ALL = 'Total Subscriptions'

export function everybodyOf(appId: AppId): Audience {
  const found = defaultSegments(appId, new Date(0)).find(({ name }) => name === ALL)
  return { kind: 'segments', included: [{ id: found?.id ?? '', name: ALL }], excluded: [] }
}
export const only = (...ids: string[]): Audience => ({
  kind: 'subscriptions',
  field: 'include_subscription_ids',
  given: ids,
  ids,
})

export type Recipient = { id: string; userId: string; token: string }
type RecipientDraft = {
  type?: SubscriptionType
  timezone?: string
  language?: string
  lastActive?: Date
  tags?: object
}

/** Users with one subscription each, put there at once. */
export async function recipients(
  engine: Pick<Engine, 'db' | 'clock'>,
  appId: AppId,
  count: number,
  draft: RecipientDraft = {},
) {
  const { db, clock } = engine
  const now = clock.now()
  const { type = 'iOSPush', timezone = null, language = null, lastActive, tags = {} } = draft
  const made = Array.from({ length: count }, (): Recipient & { hash: string } => {
    const token = newId().replaceAll('-', '').repeat(2)
    return { id: newId(), userId: newId(), token, hash: hashToken(type, token) }
  })
  await db.transaction(async (db) => {
    await db.query(sql`
      insert into users (app_id, id, tags, language, timezone_id, first_active, subscription_count, created_at, updated_at)
      select ${appId}::uuid, r."userId", ${tags}::jsonb, ${language}, ${timezone}, ${now}, 1, ${now}, ${now}
      from jsonb_to_recordset(${rows(made)}::jsonb) r("userId" uuid)`)
    await db.query(sql`
      insert into subscriptions (app_id, id, user_id, type, type_spelling, token, token_hash, created_at, updated_at)
      select ${appId}::uuid, r.id, r."userId", ${type}, ${type}, r.token, decode(r.hash, 'hex'), ${now}, ${now}
      from jsonb_to_recordset(${rows(made)}::jsonb) r(id uuid, "userId" uuid, token text, hash text)`)
    await db.query(sql`
      insert into player_counts (app_id, slot, players, subscribed, messageable) values (${appId}, 0, ${count}, ${count}, ${count})
      on conflict (app_id, slot) do update set players = player_counts.players + excluded.players,
        subscribed = player_counts.subscribed + excluded.subscribed, messageable = player_counts.messageable + excluded.messageable`)
    if (lastActive)
      await db.query(sql`
        insert into subscription_activity (app_id, subscription_id, last_active)
        select ${appId}::uuid, r.id, ${lastActive}::timestamptz from jsonb_to_recordset(${rows(made)}::jsonb) r(id uuid)`)
  })
  return made as Recipient[]
}

export type Seen = {
  subscriptionId: string
  state: string
  reason: string | null
  dueAt: Date
  expiresAt: Date
  attempts: number
  line: string
}

/** What is under way is told apart from what waits. */
export const deliveriesOf = (db: Db, appId: AppId, id: string) =>
  db.query<Seen>(sql`
    select d.subscription_id, case when s.line is null then d.state else 'sending' end as state, d.reason, d.due_at, d.expires_at,
      d.attempts, d.line
    from deliveries d
    left join slices s on s.app_id = d.app_id and s.line = d.line and d.subscription_id = any(s.subscription_ids)
      and d.message_id = any(s.message_ids)
    where d.app_id = ${appId} and d.message_id = ${id} order by d.due_at, d.subscription_id`)

/** How many deliveries are in which state: `{ 'skipped unsubscribed': 2 }`. Also checks that the counts say the same. */
export async function tally(db: Db, appId: AppId, id: string): Promise<Record<string, number>> {
  const message = await messageRow(db, appId, id)
  if (!message.expandAt) return {}
  expect(await findMiscounts(db, appId, id, message.expandAt)).toEqual([])
  const found = await deliveriesOf(db, appId, id)
  if (message.audience.kind !== 'recipients') expect(message.expandedCount).toBe(found.length)
  const counts: Record<string, number> = {}
  for (const { state, reason } of found) {
    const name = state === 'pending' || state === 'sending' || reason === null ? state : `${state} ${reason}`
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

export async function messageRow(db: Db, appId: AppId, id: string) {
  const [found] = await db.query<Message>(sql`
    select id, state, audience, expand_at, expanded_count, completed_at, canceled_at from messages where app_id = ${appId} and id = ${id}`)
  return found as Message
}

/** As the interface does it. */
export const cancel = ({ db, clock }: Pick<Engine, 'db' | 'clock'>, appId: AppId, id: string) =>
  db.transaction(async (db) => {
    await db.query(sql`select id from messages where app_id = ${appId} and id = ${id} for update`)
    await db.query(sql`
      update messages set state = 'canceled', canceled_at = ${clock.now()}
      where app_id = ${appId} and id = ${id} and state not in ('done', 'canceled')`)
    await createQueue({ clock, newId }).enqueue(db, [closeJob(appId, id)])
  })

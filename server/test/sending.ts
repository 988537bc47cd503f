// Makers for tests about sending.

import { SYSTEM } from '../src/apps/app.ts'
import { createApp } from '../src/apps/create.ts'
import { issueKey } from '../src/apps/keys/keys.ts'
import type { Clock } from '../src/lib/clock.ts'
import type { AppId } from '../src/lib/ids.ts'
import { reserveMessages } from '../src/sending/reserve.ts'
import type { Db } from '../src/storage/db.ts'
import type { Answer, Request, TestApp } from './app.ts'
import { anEmail } from './users.ts'

export type CountedApp = {
  id: AppId
  /** Below `/apps/{id}`, with a key of the app. */
  ask(path: string, request?: Request): Promise<Answer>
  /** The same with a key of the organization. */
  asOrganization(path: string, request?: Request): Promise<Answer>
  subscribe(count: number): Promise<void>
  /** As the slices of deliveries do. */
  take(count: number, db?: Db): ReturnType<typeof reserveMessages>
}

/** An app of its own in the first organization, with so many subscribed subscriptions. */
export async function aCountedApp(server: TestApp, clock: Clock, subscribed: number): Promise<CountedApp> {
  const ctx = { db: server.db, clock }
  const id = await createApp(ctx, server.tenant.organizationId, { name: 'Counted' }, SYSTEM)
  const { key } = await issueKey(ctx, { kind: 'app', appId: id }, { name: 'test' }, SYSTEM)
  const asking =
    (secret: string) =>
    (path: string, request: Request = {}) =>
      server.request(`/apps/${id}${path}`, {
        ...request,
        headers: { authorization: `Key ${secret}`, ...request.headers },
      })
  const app: CountedApp = {
    id,
    ask: asking(key),
    asOrganization: asking(server.tenant.organizationKey),
    async subscribe(count) {
      const subscriptions = Array.from({ length: count }, () => ({ type: 'Email', token: anEmail() }))
      const { status } = await app.ask('/users', { body: { subscriptions } })
      if (status !== 201) throw new Error(`nobody was subscribed: ${status}`)
    },
    take: (count, db = server.db) => db.transaction((db) => reserveMessages(db, id, count, clock.now())),
  }
  if (subscribed > 0) await app.subscribe(subscribed)
  return app
}

// Another organization on the servers of a rig, seen as a rig of its own: the same servers and stand-ins, other keys.

import { SYSTEM } from '../../src/apps/app.ts'
import { createApp, createOrganization } from '../../src/apps/create.ts'
import { issueKey } from '../../src/apps/keys/keys.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { askAs, configure, type Rig } from './rig.ts'

export async function addTenant(rig: Rig, name: string): Promise<Rig> {
  const ctx = { db: rig.database.db, clock: systemClock() }
  const organizationId = await createOrganization(ctx, { name }, SYSTEM)
  const { key: organizationKey } = await issueKey(ctx, { kind: 'org', organizationId }, { name }, SYSTEM)
  const appId = await createApp(ctx, organizationId, { name }, SYSTEM)
  const { key: appKey } = await issueKey(ctx, { kind: 'app', appId }, { name }, SYSTEM)
  const tenant: Rig = {
    ...rig,
    keys: { organizationId, organizationKey, appId, appKey },
    recipients: [],
    numbers: [],
    ask: (url, method, path, body, signal) => askAs(appKey, url, method, path, body, signal),
    create: (url, body, signal) => tenant.ask(url, 'POST', '/notifications', { app_id: appId, ...body }, signal),
    cancel: (url, id) => tenant.ask(url, 'DELETE', `/notifications/${id}?app_id=${appId}`),
  }
  await configure(tenant)
  return tenant
}

// The users of the hostile app, and filters that look at everything that is known of each of them and match nobody.

import { randomBytes } from 'node:crypto'
import { addMonths } from '../../../src/storage/partitions.ts'
import { sql } from '../../../src/storage/sql.ts'
import { insertPeople } from '../channels.ts'
import type { Rig } from '../rig.ts'
import { AUDIENCE } from './attacker.ts'

const EVENTS_EACH = 20

/** Made once, whichever attacker needs them first. */
export async function prepareAudience(rig: Rig): Promise<void> {
  if (rig.recipients.length > 0) return
  const { database, keys } = rig
  const devices = Array.from({ length: AUDIENCE }, () => ({
    type: 'iOSPush',
    token: randomBytes(32).toString('hex'),
  }))
  rig.recipients.push(...(await insertPeople(rig, keys.appId, devices)))
  await database.db.query(sql`
    update users set lat = random() * 180 - 90, long = random() * 360 - 180,
      tags = jsonb_build_object('score', (random() * 1000)::integer::text, 'name', 'Ann')
    where app_id = ${keys.appId}`)
  const now = new Date()
  await addMonths(database.db, 'events', now, now)
  await database.db.query(sql`
    insert into events (app_id, user_id, name, at, id, received_at)
    select ${keys.appId}, u.id, 'rang', ${now}::timestamptz, gen_random_uuid(), ${now}::timestamptz
    from users u, generate_series(1, ${EVENTS_EACH}) n where u.app_id = ${keys.appId}`)
  await database.db.query(sql`analyze users, subscriptions, events`)
}

const FILTERS = 100

/** As many filters as a list may have, joined by OR: nobody is matched, so that none of them is spared for anybody. */
export function costlyFilters(): object[] {
  const kinds = [
    (n: number) => ({ field: 'location', radius: 1, lat: (n % 89) + 0.5, long: n + 0.5 }),
    (n: number) => ({ field: 'event', name: 'rang', relation: '>', count: EVENTS_EACH + n, within_days: 30 }),
    (n: number) => ({ field: 'tag', key: 'score', relation: '>', value: String(1_000_000 + n) }),
  ]
  const filters = Array.from({ length: FILTERS }, (_, n) => (kinds[n % kinds.length] as (n: number) => object)(n))
  return filters.flatMap((filter, n) => (n === 0 ? [filter] : [{ operator: 'OR' }, filter]))
}

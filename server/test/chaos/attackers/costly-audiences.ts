// Nine messages to audiences that take long to find, nine more as soon as those are expanded.

import { sql } from '../../../src/storage/sql.ts'
import { until } from '../../process/launch.ts'
import type { Rig } from '../rig.ts'
import { type Attacker, repeat, urlOf } from './attacker.ts'
import { costlyFilters, prepareAudience } from './audience.ts'

const MESSAGES = 9
const EXPANDED_MS = 600_000

async function hasExpanded({ database: { db }, keys }: Rig, id: string): Promise<boolean> {
  const open = await db.query(sql`
    select 1 from messages where app_id = ${keys.appId} and id = ${id} and state in ('scheduled', 'expanding')`)
  return open.length === 0
}

export const costlyAudiences: Attacker = {
  name: 'costly audiences',
  channels: [],
  prepare: prepareAudience,
  async start(rig) {
    let accepted = 0
    const attack = repeat(MESSAGES, async (signal) => {
      const body = { filters: costlyFilters(), contents: { en: 'Hello' } }
      const answer = await rig.create(urlOf(rig), body, signal)
      if (answer.status !== 200) return
      accepted++
      await until(async () => signal.aborted || (await hasExpanded(rig, answer.body.id)), EXPANDED_MS)
    })
    await until(() => accepted >= MESSAGES)
    return attack
  },
}

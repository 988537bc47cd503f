// Forty counts of audiences at once, each of which looks at everything.

import { type Attacker, repeat, urlOf } from './attacker.ts'
import { costlyFilters, prepareAudience } from './audience.ts'

const CLIENTS = 40

export const costlyCounts: Attacker = {
  name: 'costly counts',
  channels: [],
  prepare: prepareAudience,
  async start(rig) {
    const filters = costlyFilters()
    return repeat(CLIENTS, (signal, client) =>
      client % 2 === 0
        ? rig.ask(urlOf(rig), 'POST', `/apps/${rig.keys.appId}/segments/preview`, { filters }, signal)
        : rig.ask(urlOf(rig), 'POST', '/notifications/count-unsaved', { app_id: rig.keys.appId, filters }, signal),
    )
  },
}

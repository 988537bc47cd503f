// Every route as declared, for code that describes or inspects routes without calling them.

import type { Route } from '../http/route.ts'
import { kitRoutes } from '../http/routes.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { readConfig } from '../settings/config.ts'
import { createMerger } from '../storage/merge.ts'
import { createRenderer } from '../templates/render/renderer.ts'
import { createDomains } from './domains.ts'
import { allRoutes } from './routes.ts'

const refuse = () => Promise.reject(new Error('A declared route has no database and no network.'))

export function declaredRoutes(): { domains: Route[]; kit: Route[] } {
  const domains = allRoutes(
    createDomains({
      config: readConfig({}).config,
      db: { query: refuse, transaction: refuse },
      clock: virtualClock(),
      newId,
      merger: createMerger({ slots: 1 }),
      secretKey: 'Nothing is ever sealed or signed.',
      renderer: createRenderer(),
      counting: { use: refuse },
      connection: {},
      outbound: { request: refuse },
      sendWebhook: refuse,
      resolver: { txt: refuse, mx: refuse, cname: refuse, addresses: refuse },
    }),
  )
  const kit = kitRoutes({
    routes: domains,
    metrics: { text: async () => '', contentType: 'text/plain' },
    isReady: async () => true,
  })
  return { domains, kit }
}

// Divides the database connections of a process: each kind of work has its own, so that none waits behind another.

import { type Config, ConfigError } from './config.ts'

export type ConnectionBudgetSettings = Pick<
  Config,
  'role' | 'databaseUrl' | 'databaseConnections' | 'countingConnections' | 'audienceConnections'
>

type ConnectionKind = 'requests' | 'limits' | 'counting' | 'jobs' | 'direct' | 'audiences'
export type ConnectionShares = Record<ConnectionKind, number>

const DEFAULT_CONNECTIONS = { external: 15, embedded: 30 }
/** For notifications between servers. */
const LISTENERS = 1
const API_KINDS: readonly ConnectionKind[] = ['requests', 'limits', 'counting']
const WORKER_KINDS: readonly ConnectionKind[] = ['jobs', 'direct', 'audiences']
const WEIGHTS: ConnectionShares = { requests: 4, limits: 1, counting: 2, jobs: 3, direct: 2, audiences: 2 }
const FEWEST: ConnectionShares = { requests: 2, limits: 1, counting: 2, jobs: 2, direct: 2, audiences: 2 }

/** The most connections that this process opens. */
export const connectionBudget = ({ databaseConnections, databaseUrl }: ConnectionBudgetSettings) =>
  databaseConnections ?? (databaseUrl === undefined ? DEFAULT_CONNECTIONS.embedded : DEFAULT_CONNECTIONS.external)

/** Kinds of work that this role does not do get none. */
export function shareConnections(settings: ConnectionBudgetSettings): ConnectionShares {
  const { role, countingConnections: counting, audienceConnections: audiences } = settings
  const budget = connectionBudget(settings)
  const kinds = [...(role === 'worker' ? [] : API_KINDS), ...(role === 'api' ? [] : WORKER_KINDS)]
  const given: Partial<ConnectionShares> = { ...(counting && { counting }), ...(audiences && { audiences }) }
  const fixed = kinds.reduce((sum, kind) => sum + (given[kind] ?? 0), LISTENERS)
  const others = kinds.filter((kind) => given[kind] === undefined)
  const weight = others.reduce((sum, kind) => sum + WEIGHTS[kind], 0)
  const shares: ConnectionShares = { requests: 0, limits: 0, counting: 0, jobs: 0, direct: 0, audiences: 0, ...given }
  for (const kind of others)
    shares[kind] = Math.max(FEWEST[kind], Math.floor(((budget - fixed) * WEIGHTS[kind]) / weight))
  for (const kind of Object.keys(shares) as ConnectionKind[]) if (!kinds.includes(kind)) shares[kind] = 0
  const main = role === 'worker' ? 'jobs' : 'requests'
  const left = budget - LISTENERS - kinds.reduce((sum, kind) => sum + shares[kind], 0)
  shares[main] += left
  if (shares[main] < FEWEST[main])
    throw new ConfigError(
      `DATABASE_CONNECTIONS must be at least ${budget + FEWEST[main] - shares[main]} with COUNTING_CONNECTIONS and AUDIENCE_CONNECTIONS as they are`,
    )
  return shares
}

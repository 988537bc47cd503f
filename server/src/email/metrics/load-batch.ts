// Loads a few thousand lines in one transaction: either all of them count or none.

import { hash } from 'node:crypto'
import { SYSTEM } from '../../apps/app.ts'
import { insertAuditEntries } from '../../apps/store.ts'
import type { Clock } from '../../lib/clock.ts'
import { type AppId, newId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { classifyAddresses, type HostsContext, lookUpHosts } from '../inbox-providers/hosts.ts'
import type { InboxProvider, ProviderList } from '../inbox-providers/providers.ts'
import { countEmails, writerParts } from './count.ts'
import type { EmailCount } from './facts.ts'
import { type LoadedDomainState, type LoadedFact, recordFacts, setDomainStates, type UniqueFact } from './load-store.ts'
import type { EventLine, LoadLine } from './read-event-line.ts'

export type LoadEventsContext = {
  db: Db
  clock: Clock
  providers?: ProviderList | undefined
  /** When present, the mail hosts of recipients are looked up. */
  resolver?: HostsContext['resolver'] | undefined
}

export function createLoadBatch(ctx: LoadEventsContext, now: Date) {
  /**
   * Domains whose state this load has set. A line about a domain applies to all of its events, regardless of their
   * order.
   */
  const settled = new Set<string>()

  return async (lines: readonly LoadLine[]): Promise<void> => {
    const batches = await Promise.all(byApp(lines).map(([appId, own]) => prepare(appId, own)))
    await ctx.db.transaction(async (db) => {
      for (const { appId, states, counts, facts } of batches) {
        if (states.length > 0) await changeDomainStates(db, appId, states, now)
        await countEmails(db, appId, writerParts.loading, [...counts, ...(await countOnce(db, appId, facts))])
      }
    })
  }

  async function prepare(appId: AppId, lines: readonly LoadLine[]) {
    const states = statesOf(appId, lines)
    const events = lines.filter((line) => 'event' in line)
    return { appId, states, ...splitByRepetition(await withProviders(ctx, events)) }
  }

  function statesOf(appId: AppId, lines: readonly LoadLine[]): LoadedDomainState[] {
    const states = new Map<string, LoadedDomainState['state']>()
    for (const line of lines) if ('isActive' in line) states.set(line.domain, line.isActive ? 'active' : 'paused')
    for (const { domain } of lines)
      if (!states.has(domain) && !settled.has(`${appId} ${domain}`)) states.set(domain, 'active')
    for (const domain of states.keys()) settled.add(`${appId} ${domain}`)
    return [...states].map(([domain, state]) => ({ domain, state }))
  }
}

/** Sorted by app id, so that concurrent loads take their locks in the same order and cannot deadlock. */
function byApp(lines: readonly LoadLine[]): [AppId, LoadLine[]][] {
  const apps = new Map<AppId, LoadLine[]>()
  for (const line of lines) {
    const own = apps.get(line.appId)
    if (own) own.push(line)
    else apps.set(line.appId, [line])
  }
  return [...apps].sort(([a], [b]) => (a < b ? -1 : 1))
}

type ClassifiedEvent = EventLine & { provider: InboxProvider }

async function withProviders({ db, clock, resolver, providers }: LoadEventsContext, lines: readonly EventLine[]) {
  const unclear = lines.filter(({ provider }) => provider === undefined).map(({ recipient }) => recipient)
  if (unclear.length === 0) return lines as ClassifiedEvent[]
  if (resolver) {
    const domains = unclear.map((address) => address.slice(address.lastIndexOf('@') + 1))
    await lookUpHosts({ db, clock, resolver, providers }, domains)
  }
  const found = (await classifyAddresses(db, unclear, providers)).values()
  return lines.map(
    (line): ClassifiedEvent => ({ ...line, provider: line.provider ?? (found.next().value as InboxProvider) }),
  )
}

type DomainFact = LoadedFact & { domain: string }

/** Separates what always counts from what counts once per email. Of the latter, the earliest occurrence is kept. */
function splitByRepetition(events: readonly ClassifiedEvent[]): {
  counts: EmailCount[]
  facts: Map<string, DomainFact>
} {
  const counts: EmailCount[] = []
  const facts = new Map<string, DomainFact>()
  for (const { domain, event, at, recipient, messageId, provider } of events) {
    const isAgain = event === 'opened' || event === 'clicked'
    if (isAgain || messageId === undefined) counts.push({ domain, provider, at, [event]: 1 })
    if (!isAgain && messageId === undefined) continue
    const fact: UniqueFact = isAgain ? `unique_${event}` : event
    const it = { emailId: emailIdOf(domain, messageId, recipient), fact, at, provider, domain }
    const key = keyOf(it)
    const before = facts.get(key)
    if (!before || isEarlier(it, before)) facts.set(key, it)
  }
  return { counts, facts }
}

const keyOf = ({ emailId, fact }: Pick<LoadedFact, 'emailId' | 'fact'>) => `${emailId} ${fact}`

/**
 * Orders as the SQL statement does. The provider breaks ties, so that the result does not depend on the order of
 * arrival.
 */
const isEarlier = (a: LoadedFact, b: LoadedFact) =>
  a.at < b.at || (a.at.getTime() === b.at.getTime() && a.provider < b.provider)

/** Without a message id, everything that a recipient got from a domain is treated as one email. */
const emailIdOf = (domain: string, messageId: string | undefined, recipient: string) =>
  hash('sha256', JSON.stringify([domain, messageId ?? null, recipient]), 'hex').slice(0, 32)

/** A fact that turns out to have happened earlier is moved to the earlier time. */
async function countOnce(db: Db, appId: AppId, facts: Map<string, DomainFact>): Promise<EmailCount[]> {
  if (facts.size === 0) return []
  const news = await recordFacts(db, appId, [...facts.values()])
  return news.flatMap(({ emailId, fact, at, provider, wasAt, wasProvider }) => {
    const { domain } = facts.get(keyOf({ emailId: emailId.replaceAll('-', ''), fact })) as DomainFact
    const counted: EmailCount = { domain, provider, at, [fact]: 1 }
    return wasAt && wasProvider ? [counted, { domain, provider: wasProvider, at: wasAt, [fact]: -1 }] : [counted]
  })
}

async function changeDomainStates(
  db: Db,
  appId: AppId,
  states: readonly LoadedDomainState[],
  now: Date,
): Promise<void> {
  const changed = await setDomainStates(db, appId, states, now)
  if (changed.length === 0) return
  const entries = changed.map(({ domain, state }) => ({
    id: newId(),
    actor: SYSTEM,
    action: state === 'active' ? 'email_domain.activate' : 'email_domain.pause',
    targetType: 'email_domain' as const,
    targetId: domain,
    detail: { by: 'load' },
  }))
  await insertAuditEntries(db, appId, entries, now)
}

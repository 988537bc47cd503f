// Delivers email straight to the servers of the recipients (RFC 5321, 5.1).

import type { Clock } from '../../lib/clock.ts'
import type { Channel, ChannelOutcome } from '../channel.ts'
import { createLruMap } from '../lru-map.ts'
import { sendEach } from '../send-each.ts'
import { parseEmailAddress } from './address.ts'
import { bounceReasons } from './classify-bounce.ts'
import type { EmailItem } from './message.ts'
import { createProviderThrottle } from './provider-throttle.ts'
import { sendEmail } from './send-email.ts'
import { openSmtpConnection, type SmtpConnectionSettings } from './smtp/connection.ts'
import {
  createSmtpPool,
  type PoolResult,
  type QueuedTransaction,
  type SmtpPool,
  type SmtpPoolSettings,
} from './smtp/connection-pool.ts'

export type MxRecord = { exchange: string; priority: number }

export type DirectChannelSettings = Pick<SmtpConnectionSettings, 'dial' | 'helo' | 'answerMs' | 'takenMs'> &
  Pick<SmtpPoolSettings, 'mailsEach' | 'idleMs' | 'awayMs'> & {
    clock: Clock
    /**
     * Like Node's own resolver: rejects with ENODATA if the domain has no MX records, with ENOTFOUND if there is no
     * such domain.
     */
    resolveMx(domain: string): Promise<readonly MxRecord[]>
    connectionsPerHost: number
  }

/** The hosts that accept email for a domain, or the outcome of all email to it. */
type MailHosts = { hosts: string[]; isImplicit: boolean } | ChannelOutcome

const PORT = 25
const AWAY_MS = 60_000
const MOST_HOSTS = 5
const MOST_POOLS = 1_000
const MOST_DOMAINS = 10_000
const KEPT_MS = 300_000

const GONE: ChannelOutcome = { kind: 'gone', reason: bounceReasons.hard }

export function openDirectChannel(settings: DirectChannelSettings): Channel<EmailItem> {
  const { clock, resolveMx, connectionsPerHost } = settings
  const lanes = createProviderThrottle(clock)
  const pools = createLruMap<string, SmtpPool>(MOST_POOLS, (pool) => void pool.close())
  const known = createLruMap<string, { hosts: Promise<MailHosts>; untilMs: number }>(MOST_DOMAINS)

  function poolOf(host: string): SmtpPool {
    const pool = pools.get(host)
    if (pool) return pool
    const made = createSmtpPool({
      awayMs: AWAY_MS,
      ...settings,
      connections: connectionsPerHost,
      isShared: true,
      open: () => openSmtpConnection({ ...settings, host, port: PORT, tls: 'opportunistic' }),
    })
    pools.set(host, made)
    return made
  }

  function hostsOf(domain: string): Promise<MailHosts> {
    const nowMs = clock.now().getTime()
    const found = known.get(domain)
    if (found && nowMs < found.untilMs) return found.hosts
    const entry = { hosts: findHosts(domain, resolveMx), untilMs: nowMs + KEPT_MS }
    known.set(domain, entry)
    entry.hosts.then((hosts) => {
      // Not cached, because the resolver may have an answer soon.
      if ('kind' in hosts && hosts.kind === 'retry') entry.untilMs = 0
    })
    return entry.hosts
  }

  /** Tries the next host if one cannot be reached. If all fail, a temporary failure is preferred as the result. */
  async function deliver(hosts: readonly string[], mailing: QueuedTransaction): Promise<PoolResult> {
    let unopened: PoolResult | undefined
    for (const host of hosts) {
      const result = await poolOf(host).deliver(mailing)
      if (result.kind !== 'unopened') return result
      if (!unopened || !result.isFinal) unopened = result
    }
    return unopened as PoolResult
  }

  return sendEach({
    // A slow server delays only email to itself, and only that of one app. How much of one app is in flight overall is
    // limited by the caller.
    lanes: {
      of: (item) => `${item.source.appId} ${item.source.lane} ${domainOf(item)}`,
      atOnce: 2 * connectionsPerHost,
    },
    async sendOne(item) {
      const found: MailHosts = parseEmailAddress(item.to)
        ? await hostsOf(domainOf(item))
        : { hosts: [], isImplicit: false }
      if ('kind' in found) return found
      let isNameless = false
      const outcome = await sendEmail(item, {
        peerRole: 'host',
        throttle: lanes,
        clock,
        async deliver(mailing) {
          const result = await deliver(found.hosts, mailing)
          isNameless = result.kind === 'unopened' && result.isHostUnknown === true
          return result
        },
      })
      return isNameless && found.isImplicit ? GONE : outcome
    },
    async release() {
      await Promise.all(pools.values().map((pool) => pool.close()))
    },
  })
}

const domainOf = ({ to }: EmailItem) => parseEmailAddress(to)?.domain ?? ''

async function findHosts(domain: string, resolveMx: DirectChannelSettings['resolveMx']): Promise<MailHosts> {
  const itself = { hosts: [domain], isImplicit: true }
  try {
    const records = await resolveMx(domain)
    if (records.length === 0) return itself
    const hosts = records
      // Hosts with the same preference share the load.
      .map(({ exchange, priority }) => ({
        host: exchange.toLowerCase().replace(/\.$/, ''),
        priority,
        lot: Math.random(),
      }))
      .filter(({ host }) => host !== '')
      .sort((a, b) => a.priority - b.priority || a.lot - b.lot)
      .slice(0, MOST_HOSTS)
      .map(({ host }) => host)
    // A single dot says that the domain accepts no email (RFC 7505).
    return hosts.length === 0 ? GONE : { hosts, isImplicit: false }
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === 'ENODATA') return itself
    return code === 'ENOTFOUND' ? GONE : { kind: 'retry', reason: 'name not found' }
  }
}

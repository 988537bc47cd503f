import { expect, test } from 'vitest'
import { sql } from '../../src/storage/sql.ts'
import { until } from '../process/launch.ts'
import { type Attacker, setFault, urlOf } from './attackers/attacker.ts'
import { costlyAudiences } from './attackers/costly-audiences.ts'
import { costlyCounts } from './attackers/costly-counts.ts'
import { craftedP12 } from './attackers/crafted-p12.ts'
import { garbageAnswers } from './attackers/garbage-answers.ts'
import { hangingMail } from './attackers/hanging-mail.ts'
import { hangingOrigins, hangingProviders } from './attackers/hanging-push.ts'
import { slowTemplates } from './attackers/slow-templates.ts'
import { openGate } from './gate.ts'
import { isFull } from './ledger.ts'
import { closeLater, openRig, type Rig } from './rig.ts'
import { addTenant } from './tenants.ts'
import { type Measured, openVictim, percentile, type Subject, subjects } from './victim.ts'

const attackers: readonly Attacker[] = [
  costlyAudiences,
  costlyCounts,
  slowTemplates,
  craftedP12,
  garbageAnswers,
  hangingOrigins,
  hangingProviders,
  hangingMail,
].filter(({ name }) => name.includes(process.env.CHAOS_ATTACKER ?? ''))

/** How many times longer than undisturbed: the goal. */
const MAX_TIMES: Record<Subject, number> = {
  'direct push': 5,
  'direct mail': 5,
  bulk: 2,
  'segment preview': 5,
  'template preview': 5,
  p12: 5,
}
/** Anything quicker counts as undisturbed. At gate scale only a stall that no busy machine explains is a failure. */
const ON_TIME_MS = isFull ? 0 : 30_000
const TRIES = isFull ? 1 : 2
/** A mail that hangs is given up after five minutes. */
const CALM_MS = 360_000

test('whatever one app does, another one’s messages arrive on time and its requests are answered', async () => {
  const { victimRig, hostileRig, cutProviders } = await openTwoTenants()
  const victim = await openVictim(victimRig)
  for (const { prepare } of attackers) await prepare(hostileRig)
  // The first time everything is slow, whatever it is.
  await victim.measure()
  const idle = await victim.measure()
  const faults = harmOf('nobody', idle)
  // After the last attack nobody waits for its end.
  let calmDown = async () => {}

  for (const attacker of attackers) {
    let figures = new Map<Subject, object>()
    let slow: readonly Subject[] = subjects
    // A stall is there each time; others on the machine only now and then.
    for (let n = 0; n < TRIES && slow.length > 0; n++) {
      await calmDown()
      const attack = await attacker.start(hostileRig)
      const attacked = await victim.measure()
      await attack.stop()
      calmDown = () => calm(hostileRig, attacker, cutProviders)
      faults.push(...harmOf(attacker.name, attacked))
      slow = slow.filter((subject) => p99Of(attacked, subject) > mostMsOf(idle, subject))
      figures = new Map(subjects.map((subject) => [subject, figuresOf(subject, idle, attacked)]))
    }
    console.log(`beside ${attacker.name}:`)
    console.table(Object.fromEntries(figures))
    for (const subject of slow)
      faults.push(`${attacker.name}: ${subject} is slow: ${JSON.stringify(figures.get(subject))}`)
  }
  expect(faults).toEqual([])
}, 3_600_000)

const p99Of = ({ tookMs }: Measured, subject: Subject) => percentile(tookMs.get(subject) ?? [], 0.99)
const mostMsOf = (idle: Measured, subject: Subject) => Math.max(MAX_TIMES[subject] * p99Of(idle, subject), ON_TIME_MS)

function figuresOf(subject: Subject, idle: Measured, attacked: Measured) {
  const median = ({ tookMs }: Measured) => Math.round(percentile(tookMs.get(subject) ?? [], 0.5))
  const [idleMs, attackedMs] = [p99Of(idle, subject), p99Of(attacked, subject)]
  return {
    'idle p50': median(idle),
    'idle p99': Math.round(idleMs),
    'attacked p50': median(attacked),
    'attacked p99': Math.round(attackedMs),
    // Of the bulk message: the rate, against what it is undisturbed.
    rate: subject === 'bulk' ? Number((idleMs / attackedMs).toFixed(2)) : '',
    times: Number((attackedMs / idleMs).toFixed(1)),
    refused: [...attacked.refusals].filter(([name]) => name.startsWith(subject)).join('; '),
  }
}

/** The victim has the first keys of the server; between the server and its providers there are gates that can be shut for a moment. */
async function openTwoTenants() {
  const gates: Awaited<ReturnType<typeof openGate>>[] = []
  const ports: number[] = []
  const victimRig = await openRig({
    recipients: 0,
    hasOwnDatabase: true,
    async env({ receivers }) {
      for (const at of [receivers.apns, receivers.smtp]) {
        const port = Number(new URL(at).port)
        const gate = await openGate(port)
        closeLater(gate)
        gates.push(gate)
        ports.push(port)
      }
      const [https, smtp] = gates.map(({ port }) => `127.0.0.1:${port}`)
      return {
        MAX_IN_FLIGHT: '200',
        PROVIDER_CONNECT: `https://*=${https},smtp://*=${smtp}`,
        SMTP_URL: `smtp://${smtp}?catcher=true`,
      }
    },
  })
  const cutProviders = () => {
    for (const [n, gate] of gates.entries()) gate.leadTo(ports[n] as number)
  }
  return { victimRig, hostileRig: await addTenant(victimRig, 'Hostile'), cutProviders }
}

/** Unless everything was answered with 2xx, and every message was sent. */
const harmOf = (attacker: string, { refusals, lost, late }: Measured): string[] => [
  ...[...refusals].map(([name, count]) => `${attacker}: ${count} times ${name}`),
  ...[...lost].map(([state, count]) => `${attacker}: ${count} deliveries ${state}`),
  ...(late > 0 ? [`${attacker}: ${late} deliveries late`] : []),
]

/** Ends what the attack has left behind, so that the next one is measured by itself. */
async function calm(rig: Rig, { channels }: Attacker, cutProviders: () => void): Promise<void> {
  const { database, keys } = rig
  for (const channel of channels) await setFault(rig, channel, null)
  const open = () =>
    database.db.query<{ id: string }>(sql`
      select id from messages where app_id = ${keys.appId} and state in ('scheduled', 'expanding', 'sending')`)
  for (const { id } of await open()) await rig.cancel(urlOf(rig), id)
  if (channels.length > 0) cutProviders()
  const isWorking = () =>
    database.db.query(sql`
      select 1 from jobs where app_id = ${keys.appId} and name like 'messages.%' and state <> 'parked' limit 1`)
  const isCounting = () =>
    database.db.query(sql`
      select 1 from pg_stat_activity
      where state = 'active' and pid <> pg_backend_pid() and query ilike '%from events e%' limit 1`)
  await until(async () => (await isWorking()).length === 0 && (await isCounting()).length === 0, CALM_MS)
}

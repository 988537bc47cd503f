// Warm-up: introduces a new domain to mail servers gradually. Each stage sends a limited number of emails, in the order
// of the recipients' ids.

import { invalid } from '../../lib/errors.ts'
import type { ContentChannel } from '../../templates/content.ts'
import type { WarmUp, WarmUpStage } from '../message.ts'
import type { CreateMessageBody } from '../schema.ts'
import { parseInstant } from './parse-time.ts'

type Given = NonNullable<CreateMessageBody['email_warm_up']>

const DAY_MS = 86_400_000
/** A pace that mail servers get used to: 100 emails on the first day, doubled each day, for 20 days. */
const RECOMMENDED = { first: 100, days: 20 }

export function readWarmUp(body: CreateMessageBody, channel: ContentChannel, now: Date): WarmUp | undefined {
  const { kind, email_warm_up: given } = body
  if (!kind && !given) return undefined
  if (!kind || !given) throw invalid('kind warmup and email_warm_up go together')
  if (channel !== 'email') throw invalid(`kind warmup is for email alone, and target_channel is ${channel}`)
  for (const field of ['send_after', 'delayed_option'] as const)
    if (body[field]) throw invalid(`kind warmup cannot be combined with ${field}: its stages say when`)
  const strategy = given.strategy ?? 'custom'
  if (strategy === 'recommended' && !given.stages) return { strategy, stages: recommendedFrom(now) }
  return { strategy, stages: readStages(given.stages ?? [], now) }
}

function readStages(given: NonNullable<Given['stages']>, now: Date): WarmUpStage[] {
  if (given.length === 0) throw invalid('email_warm_up.stages must have at least one stage')
  let last: Date | undefined
  const stages = given.map((stage, i): WarmUpStage => {
    const name = `email_warm_up.stages[${i}]`
    const start = readTime(`${name}.start`, stage.start)
    const end = readTime(`${name}.end`, stage.end)
    if (end <= start) throw invalid(`${name}.end must be after its start`)
    if (last && start < last) throw invalid(`${name}.start must not be before the end of the stage before it`)
    last = end
    return { start: start.toISOString(), end: end.toISOString(), quota: stage.quota, acked: stage.acked === true }
  })
  if (last && last <= now) throw invalid('email_warm_up.stages are all over')
  return stages
}

function readTime(name: string, given: string): Date {
  const moment = parseInstant(given)
  if (!moment) throw invalid(`${name} is not understood; write it like 2030-09-24T14:00:00Z`)
  return moment
}

const recommendedFrom = (now: Date): WarmUpStage[] =>
  Array.from({ length: RECOMMENDED.days }, (_, day) => ({
    start: new Date(now.getTime() + day * DAY_MS).toISOString(),
    end: new Date(now.getTime() + (day + 1) * DAY_MS).toISOString(),
    quota: RECOMMENDED.first * 2 ** day,
    acked: false,
  }))

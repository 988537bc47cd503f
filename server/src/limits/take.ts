// Checks one request against all its counters, in the same way wherever the counters are kept.

import { type Allowance, counterKey, type LimitPlan, type Profile, type RuleCharge, windowFor } from './rules.ts'
import { type Grain, record, type Window, waitMs } from './window.ts'

export type Demand = Allowance & { key: string }

export type LimitedApp = { id: string; plan: LimitPlan; limits: Record<string, number> }

/** A request takes one from each counter, so a counter that is named twice is charged once. */
export function demandsOf(app: LimitedApp, charges: RuleCharge[], profile: Profile): Demand[] {
  const demands: Demand[] = []
  for (const charge of charges) {
    const key = counterKey(charge)
    if (demands.some((demand) => demand.key === key)) continue
    const { limit, windowMs } = windowFor(charge.rule, app.plan, app.limits, profile)
    demands.push({ key, limit, windowMs })
  }
  return demands
}

export type Counters = {
  find(key: string): Window | undefined
  /** Returns the existing window, or creates one. */
  open(key: string): Window
}

/**
 * Takes one from each, or from none. Returns 0 when taken, otherwise the whole seconds after which the same request is
 * admitted.
 */
export function takeAll(counters: Counters, demands: Demand[], now: number, grain: Grain): number {
  let wait = 0
  for (const demand of demands) {
    const window = counters.find(demand.key)
    // A refused request creates no window: a flood of them must not fill the memory.
    const here = window ? waitMs(window, now, demand) : demand.limit < 1 ? demand.windowMs : 0
    if (here > wait) wait = here
  }
  if (wait > 0) return Math.max(1, Math.ceil(wait / 1000))
  for (const demand of demands) record(counters.open(demand.key), now, demand.limit, grain)
  return 0
}

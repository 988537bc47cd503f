// Who gets a process, and when. The processes are stand-ins on a virtual clock, which end a slice when the test says so: what is
// measured is order and counts.

import { afterEach, describe, expect, test } from 'vitest'
import { virtualClock } from '../../lib/clock.ts'
import { type AppId, newId } from '../../lib/ids.ts'
import type { JobLane } from '../../queue/job.ts'
import { createRenderPool } from './pool.ts'
import { createCall } from './render-call.ts'
import { createRenderer, type Renderer } from './renderer.ts'
import { newTiming } from './step-timing.ts'
import type { StepBatchOutcome, WorkerProcess } from './worker-process.ts'
import type { StepBatch, StepResult } from './worker-protocol.ts'

const now = new Date('2030-01-01T00:00:00Z')
/** What the engine answers when a template hits its own limit. */
const LATE: StepResult = { ok: false, reason: 'render_failed', field: 'text', message: 'takes too long' }
const LIMIT_MS = 200

type Running = { app: string; size: number; finish(): Promise<void>; kill(): Promise<void> }

let open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const it of open) await it.close()
  open = []
})

/** Everything that follows from what has just happened. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

function aStage() {
  const clock = virtualClock()
  const running: Running[] = []
  const handedOut: { app: string; size: number }[] = []
  const alive = new Set<WorkerProcess>()
  let starts = 0
  let startTime = {}

  async function startProcess(): Promise<WorkerProcess> {
    starts++
    clock.advanceLease(startTime)
    const process: WorkerProcess = {
      run: (slice) => run(process, slice),
      isAlive: () => alive.has(process),
      close: () => void alive.delete(process),
    }
    alive.add(process)
    return process
  }

  function run(process: WorkerProcess, { steps }: StepBatch): Promise<StepBatchOutcome> {
    const { promise, resolve } = Promise.withResolvers<StepBatchOutcome>()
    const scopes = steps.map((step) => (step.do === 'render' ? step.scope : {}) as { app: string; ms: number })
    const app = scopes[0]?.app ?? ''
    const end = async (outcome: StepBatchOutcome) => {
      running.splice(running.indexOf(entry), 1)
      resolve(outcome)
      await settled()
    }
    const entry: Running = {
      app,
      size: steps.length,
      finish() {
        const tookMs = scopes.map(({ ms }) => Math.min(ms, LIMIT_MS))
        clock.advanceLease({ ms: tookMs.reduce((sum, ms) => sum + ms, 0) })
        return end({ results: scopes.map(({ ms }) => (ms < LIMIT_MS ? { ok: true, texts: {} } : LATE)), tookMs })
      },
      kill() {
        clock.advanceLease({ ms: 300 })
        alive.delete(process)
        return end({ results: [], tookMs: [], endReason: 'takes too long' })
      },
    }
    running.push(entry)
    handedOut.push({ app, size: steps.length })
    return promise
  }

  return {
    clock,
    running,
    handedOut,
    alive,
    startProcess,
    starts: () => starts,
    startsTake(time: { seconds: number }) {
      startTime = time
    },
    apps: () => running.map(({ app }) => app),
    async drain() {
      for (await settled(); running[0]; ) await running[0].finish()
    },
  }
}

type Asked = { ms: number; count?: number; lane?: JobLane; fingerprint?: string }

function aRenderer(processes: number) {
  const stage = aStage()
  const renderer = createRenderer({ processes, clock: stage.clock, startProcess: stage.startProcess })
  open.push(renderer)
  const ids = new Map<string, AppId>()
  async function ask(app: string, { ms, count = 1, lane = 'direct', fingerprint }: Asked) {
    const appId = ids.get(app) ?? newId()
    ids.set(app, appId)
    const template = { text: { kind: 'text' as const, text: 'as slow as told' } }
    const item = { template, context: { app, ms }, ...(fingerprint !== undefined && { fingerprint }) }
    return renderer.render(appId, Array(count).fill(item), now, lane).catch(() => [])
  }
  /** Two processes run, and nobody uses them. */
  async function warmUp() {
    const warm = ask('warm-up', { ms: 0, lane: 'bulk' })
    await stage.drain()
    await warm
    stage.handedOut.length = 0
  }
  return { ...stage, renderer, ask, warmUp }
}

const count = <Item>(items: readonly Item[], item: Item) => items.filter((it) => it === item).length

describe('the reserved process', () => {
  test.each([2, 3, 8])('of %d is never used by bulk work, whatever waits', async (processes) => {
    const { ask, running, apps } = aRenderer(processes)
    for (const app of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']) void ask(app, { ms: 1, count: 500, lane: 'bulk' })
    await settled()
    for (let turn = 0; turn < 50; turn++) {
      expect(running).toHaveLength(processes - 1)
      await running[0]?.finish()
    }
    void ask('neighbour', { ms: 1 })
    expect(apps()).toContain('neighbour')
  })

  test.each([2, 3, 8])('of %d is free for others while one app has five slow previews', async (processes) => {
    const { ask, running, apps, warmUp } = aRenderer(processes)
    await warmUp()
    for (let n = 0; n < 5; n++) void ask('hostile', { ms: LIMIT_MS })
    await settled()
    for (let turn = 0; turn < 4; turn++) {
      expect(count(apps(), 'hostile')).toBeLessThan(processes)
      void ask(`neighbour ${turn}`, { ms: 1 })
      expect(apps()).toContain(`neighbour ${turn}`)
      await running.find(({ app }) => app !== 'hostile')?.finish()
      await running.find(({ app }) => app === 'hostile')?.finish()
    }
  })

  test('is not for templates that are known to be slow', async () => {
    const { ask, apps, drain, clock } = aRenderer(2)
    const known = ask('a', { ms: 100, fingerprint: 'slow' })
    await drain()
    await known
    clock.advanceLease({ minutes: 10 })
    void ask('b', { ms: 1, count: 500, lane: 'bulk' })
    await settled()
    void ask('a', { ms: 100, fingerprint: 'slow' })
    expect(apps()).toEqual(['b'])
    void ask('a', { ms: 1, fingerprint: 'quick' })
    void ask('c', { ms: 1, fingerprint: 'quick' })
    expect(apps()).toEqual(['b', 'c'])
  })

  test('is for apps within their budget, which they are again some time after', async () => {
    const { ask, apps, running, clock, warmUp } = aRenderer(2)
    await warmUp()
    for (let n = 0; n < 10; n++) {
      void ask('greedy', { ms: 150 })
      await running[0]?.finish()
    }
    void ask('b', { ms: 1, count: 500, lane: 'bulk' })
    void ask('greedy', { ms: 1 })
    expect(apps()).toEqual(['b'])
    clock.advanceLease({ minutes: 2 })
    void ask('c', { ms: 1 })
    await running.find(({ app }) => app === 'c')?.finish()
    expect(apps()).toEqual(['b', 'greedy'])
  })
})

describe('apps', () => {
  test('that used much come behind those that used little, until these have used as much', async () => {
    const { ask, running, handedOut, warmUp } = aRenderer(2)
    await warmUp()
    void ask('slow', { ms: 100, count: 100, lane: 'bulk' })
    for (let n = 0; n < 10; n++) await running[0]?.finish()
    void ask('quick', { ms: 1, count: 1_000, lane: 'bulk' })
    handedOut.length = 0
    for (let n = 0; n < 15; n++) await running[0]?.finish()
    expect(new Set(handedOut.map(({ app }) => app))).toEqual(new Set(['quick']))
  })

  test('get the same time, however slow the templates of one of them are', async () => {
    const { ask, running, clock, warmUp } = aRenderer(2)
    await warmUp()
    void ask('slow', { ms: 150, count: 1_000, lane: 'bulk' })
    void ask('quick', { ms: 1, count: 20_000, lane: 'bulk' })
    const used = new Map<string, number>()
    for (let n = 0; n < 200; n++) {
      const [slice] = running
      const beganMs = clock.leaseMs()
      await slice?.finish()
      const app = slice?.app ?? ''
      used.set(app, (used.get(app) ?? 0) + clock.leaseMs() - beganMs)
    }
    const [slow, quick] = [used.get('slow') ?? 0, used.get('quick') ?? 0]
    expect(quick / slow).toBeGreaterThan(0.8)
    expect(quick / slow).toBeLessThan(1.25)
  })

  test('have their direct calls before their bulk ones, and all of these take turns', async () => {
    const { ask, running, handedOut, warmUp } = aRenderer(2)
    await warmUp()
    void ask('a', { ms: 10, count: 20, lane: 'bulk' })
    void ask('a', { ms: 1, count: 3, lane: 'bulk' })
    void ask('a', { ms: 1, count: 2 })
    for (let n = 0; n < 4; n++) await running[0]?.finish()
    expect(handedOut.map(({ size }) => size)).toEqual([10, 2, 5, 3, 5])
  })

  test('pay for the start of a process that their template had ended', async () => {
    const { ask, apps, running, startsTake, warmUp } = aRenderer(2)
    await warmUp()
    startsTake({ seconds: 2 })
    const failed = ask('hostile', { ms: 1 })
    // The first time may have been the machine's fault.
    for (let n = 0; n < 2; n++) await running[0]?.kill()
    expect(await failed).toMatchObject([{ ok: false, message: 'takes too long' }])
    void ask('b', { ms: 1, count: 500, lane: 'bulk' })
    void ask('hostile', { ms: 1 })
    expect(apps()).toEqual(['b'])
  })
})

describe('slices', () => {
  const sizesFor = async (ms: number) => {
    const { ask, handedOut, drain } = aRenderer(2)
    const asked = ask('a', { ms, count: 400, lane: 'bulk' })
    await drain()
    expect(await asked).toHaveLength(400)
    const sizes = handedOut.map(({ size }) => size)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(400)
    return { first: sizes[0] as number, typical: sizes[1] as number }
  }

  test('shrink with the time that a template takes per recipient', async () => {
    expect(await sizesFor(0.1)).toEqual({ first: 10, typical: 100 })
    expect(await sizesFor(2)).toEqual({ first: 10, typical: 25 })
    expect(await sizesFor(20)).toEqual({ first: 10, typical: 2 })
    expect(await sizesFor(100)).toEqual({ first: 10, typical: 1 })
  })

  test('keep the size of known content from call to call', async () => {
    const { ask, handedOut, drain } = aRenderer(2)
    for (let n = 0; n < 2; n++) {
      const asked = ask('a', { ms: 20, count: 20, lane: 'bulk', fingerprint: 'known' })
      await drain()
      await asked
    }
    expect(handedOut.map(({ size }) => size)).toEqual([10, 2, 2, 2, 2, 2, ...Array(10).fill(2)])
  })
})

describe('a template that hits its limit five times in a row', () => {
  const reasons = (results: readonly { ok: boolean; reason?: string }[]) => results.map((it) => it.reason ?? 'ok')

  test('is suspended from the fifth on, and no more processes are given to it', async () => {
    const { ask, handedOut, drain } = aRenderer(2)
    const asked = ask('a', { ms: LIMIT_MS, count: 200, lane: 'bulk', fingerprint: 'hopeless' })
    await drain()
    const results = reasons(await asked)
    // Those of the slice that was under way were tried.
    expect(handedOut).toEqual([{ app: 'a', size: 10 }])
    expect(results.slice(0, 4)).toEqual(Array(4).fill('render_failed'))
    expect(results[4]).toBe('template_suspended')
    expect(new Set(results.slice(10))).toEqual(new Set(['template_suspended']))
  })

  test('is so too when each call is for one recipient, unless one of them was rendered meanwhile', async () => {
    const { ask, drain } = aRenderer(2)
    const one = async (ms: number) => {
      const asked = ask('a', { ms, fingerprint: 'content' })
      await drain()
      return reasons(await asked)[0]
    }
    const told: unknown[] = []
    for (const ms of [LIMIT_MS, LIMIT_MS, LIMIT_MS, LIMIT_MS, 1]) told.push(await one(ms))
    for (let n = 0; n < 6; n++) told.push(await one(LIMIT_MS))
    expect(told).toEqual([
      ...Array(4).fill('render_failed'),
      'ok',
      ...Array(4).fill('render_failed'),
      'template_suspended',
      'render_failed',
    ])
  })

  test('is of one app and one content; content without a fingerprint is given up in its call alone', async () => {
    const { ask, drain } = aRenderer(2)
    const calls = [
      ask('a', { ms: LIMIT_MS, count: 30, fingerprint: 'same' }),
      ask('b', { ms: 1, count: 30, fingerprint: 'same' }),
      ask('a', { ms: 1, count: 30, fingerprint: 'other' }),
      ask('a', { ms: LIMIT_MS, count: 30 }),
    ]
    await drain()
    const [suspended, ofB, other, unnamed] = (await Promise.all(calls)).map((results) => new Set(reasons(results)))
    expect(suspended).toContain('template_suspended')
    expect([ofB, other, unnamed]).toEqual([new Set(['ok']), new Set(['ok']), new Set(['render_failed'])])
  })
})

describe('processes', () => {
  test('are started as they are needed: one for a direct call, two for bulk work', async () => {
    const direct = aRenderer(8)
    void direct.ask('a', { ms: 1 })
    await direct.drain()
    expect(direct.starts()).toBe(1)
    const bulk = aRenderer(8)
    void bulk.ask('a', { ms: 1, count: 50, lane: 'bulk' })
    await bulk.drain()
    expect(bulk.starts()).toBe(2)
  })

  test('are at least two, whatever was asked for', async () => {
    const { ask, drain, starts } = aRenderer(1)
    const asked = ask('a', { ms: 1, count: 5, lane: 'bulk' })
    await drain()
    expect(await asked).toHaveLength(5)
    expect(starts()).toBe(2)
  })

  test('stop when nobody has used them for a minute, except one', async () => {
    const { clock, alive, startProcess, drain } = aStage()
    const pool = createRenderPool({ processes: 4, clock, startProcess })
    open.push(pool)
    const calls = Array.from({ length: 4 }, () => {
      const step = { do: 'render' as const, sources: {}, scope: { app: 'a', ms: 1 } }
      return createCall({ appId: newId(), lane: 'direct', steps: [step], timings: [newTiming()], nowMs: 0 })
    })
    for (const { call } of calls) pool.add(call)
    await drain()
    await Promise.all(calls.map(({ results }) => results))
    expect(alive.size).toBe(4)
    pool.stopIdle()
    expect(alive.size).toBe(4)
    clock.advanceLease({ minutes: 1 })
    pool.stopIdle()
    expect([alive.size, pool.stats().processes]).toEqual([1, 1])
  })

  test('that cannot be started fail what waits for them, and are tried again for what comes later', async () => {
    const { clock, startProcess, drain } = aStage()
    let isBroken = true
    const renderer: Renderer = createRenderer({
      clock,
      startProcess: () => (isBroken ? Promise.reject(new Error('no memory')) : startProcess()),
    })
    open.push(renderer)
    const items = [{ template: {}, context: { app: 'a', ms: 1 } }]
    await expect(renderer.render(newId(), items, now)).rejects.toMatchObject({ kind: 'unavailable' })
    isBroken = false
    const later = renderer.render(newId(), items, now)
    await drain()
    expect(await later).toEqual([{ ok: true, texts: {} }])
  })
})

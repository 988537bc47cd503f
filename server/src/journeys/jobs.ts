// The work that journeys leave to be done. The key is the journey: what is asked for twice is one job.

import type { AppId } from '../lib/ids.ts'
import type { NewJob } from '../queue/job.ts'
import type { JourneyId } from './journey.ts'

export const ACTIVATE_JOURNEY = 'journeys.activate'
export const START_JOURNEY = 'journeys.start'
export const STOP_JOURNEY = 'journeys.stop'

export const activateJob = (appId: AppId, id: JourneyId): NewJob => ({ appId, name: ACTIVATE_JOURNEY, key: id })

export const startJob = (appId: AppId, id: JourneyId, runAt: Date): NewJob => ({
  appId,
  name: START_JOURNEY,
  key: id,
  runAt,
})

export const stopJob = (appId: AppId, id: JourneyId, runAt: Date): NewJob => ({
  appId,
  name: STOP_JOURNEY,
  key: id,
  runAt,
})

// What a batch decided about one run.

import type { RunEnds, RunRests } from './interpret.ts'
import type { LockedRun } from './run-store.ts'

export type RunMove = { run: LockedRun; outcome: RunRests | RunEnds }

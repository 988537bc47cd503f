import type { RunsContext } from '../runs/context.ts'

export type EntryContext = Pick<RunsContext, 'db' | 'now' | 'newId' | 'queue' | 'live'> & {
  engine: Pick<RunsContext['engine'], 'scanAudience'>
}

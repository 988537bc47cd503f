import type { JourneysContext } from '../context.ts'

export type EntryContext = Pick<JourneysContext, 'db' | 'now' | 'newId' | 'queue' | 'live'>

import type { Db } from '../../storage/db.ts'

/** What the operations on metrics of email are made of. */
export type MetricsContext = { db: Db }

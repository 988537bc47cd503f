import { unavailable } from '../lib/errors.ts'
import type { Db } from './db.ts'

const WRITES = /\b(insert\s+into|update|delete\s+from|merge\s+into|copy|truncate|create\s+index)\b/i

/**
 * Refuses writes while `mayWrite` returns false, so that reads continue. Whole transactions are refused: few of them
 * only read, and at their beginning nobody can tell which.
 */
export function guardWrites(db: Db, mayWrite: () => boolean): Db {
  const isRefused = (text: string) => !mayWrite() && WRITES.test(text)
  return {
    query: (statement, options) =>
      isRefused(statement.text) ? Promise.reject(unavailable()) : db.query(statement, options),
    transaction: (run) => (mayWrite() ? db.transaction(run) : Promise.reject(unavailable())),
  }
}

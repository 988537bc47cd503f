import { unavailable } from '../lib/errors.ts'
import type { Db } from './db.ts'

const WRITES = /\b(insert\s+into|update|delete\s+from|merge\s+into|copy|truncate|create\s+index)\b/i

/**
 * Refuses writes for as long as `mayWrite` says no, so that reads can go on. Whole transactions are refused: those that
 * only read are few, and where one ends cannot be told when it begins.
 */
export function guardWrites(db: Db, mayWrite: () => boolean): Db {
  const isRefused = (text: string) => !mayWrite() && WRITES.test(text)
  return {
    query: (statement, options) =>
      isRefused(statement.text) ? Promise.reject(unavailable()) : db.query(statement, options),
    transaction: (run) => (mayWrite() ? db.transaction(run) : Promise.reject(unavailable())),
  }
}

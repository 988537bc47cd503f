// Reads external JSON defensively: a field of an unexpected type is treated as missing.

import { scanJson } from '../../../lib/scan-json.ts'

export type JsonFields = Record<string, unknown>

/** More than SendGrid sends at once. The limits keep an unauthenticated caller from occupying the server. */
const LIMITS = { maxDepth: 32, maxKeys: 50_000, maxValues: 50_000 }

/** Returns undefined for text that is not JSON or that exceeds what any provider sends. */
export function parseJson(text: string): unknown {
  if (scanJson(text, LIMITS) !== undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const fieldsOf = (value: unknown): JsonFields =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as JsonFields) : {}
export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined
const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined

/** Accepts ISO 8601, or seconds since the epoch. */
export function timeOf(value: unknown): Date | undefined {
  const seconds = numberOf(value)
  const time = seconds !== undefined ? new Date(seconds * 1_000) : new Date(textOf(value) ?? Number.NaN)
  return Number.isNaN(time.getTime()) ? undefined : time
}

/** Reads `550 5.1.1 …`, the form in which servers refuse. */
export function parseRefusal(text: string | undefined, status?: string | undefined) {
  const bare = text?.replace(/^smtp\s*;\s*/i, '')
  const code = /^\s*([245]\d\d)\b/.exec(bare ?? '')?.[1]
  const enhanced = /^[245]\.\d{1,3}\.\d{1,3}$/.test(status ?? '') ? status : undefined
  return {
    ...(code !== undefined && { code: Number(code) }),
    ...(enhanced !== undefined && { enhanced }),
    ...(bare !== undefined && { text: bare }),
  }
}

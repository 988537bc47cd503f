// The filters that templates may use: our own, and those of Liquid, except filters that are random, slow by nature or
// reveal something about the server.

import type { Liquid } from 'liquidjs'

const ALLOWED_FILTERS = new Set(
  (
    'abs append at_least at_most base64_decode base64_encode capitalize ceil compact concat date default divided_by downcase ' +
    'escape escape_once find find_index first floor has join json last lstrip map minus modulo newline_to_br plus prepend raw ' +
    'reject remove remove_first remove_last replace replace_first replace_last reverse round rstrip size slice sort ' +
    'sort_natural split squish strip strip_html strip_newlines sum times truncate truncatewords uniq upcase url_decode ' +
    'url_encode where'
  ).split(' '),
)

type FilterHandler = (this: unknown, ...values: unknown[]) => unknown
type LiquidFilter = FilterHandler | { handler: FilterHandler; raw?: boolean }

const handlerOf = (filter: LiquidFilter): FilterHandler => (typeof filter === 'function' ? filter : filter.handler)

/** `nowMs` is a function because one engine renders at many times. */
export function configureFilters(liquid: Liquid, nowMs: () => number, isHtml: boolean): void {
  const filters = liquid.filters as unknown as Record<string, LiquidFilter>
  for (const name of Object.keys(filters)) if (!ALLOWED_FILTERS.has(name)) delete filters[name]

  const formatDate = handlerOf(filters.date as LiquidFilter)
  filters.date = function (value, ...rest) {
    return formatDate.call(this, parseDate(value, nowMs()) ?? value, ...rest)
  }
  filters.pluralize = (count, singular, plural) =>
    Number(count) === 1 ? String(singular ?? '') : String(plural ?? `${singular ?? ''}s`)

  if (!isHtml) return
  // These filters return HTML, so their results must not be escaped again.
  const escapeHtml = handlerOf(filters.escape as LiquidFilter)
  filters.escape = { handler: escapeHtml, raw: true }
  filters.escape_once = { handler: handlerOf(filters.escape_once as LiquidFilter), raw: true }
  const breakLines = handlerOf(filters.newline_to_br as LiquidFilter)
  filters.newline_to_br = {
    raw: true,
    handler(value) {
      return breakLines.call(this, escapeHtml.call(this, value))
    },
  }
}

const ZONE = /(?:[zZ]|[+-]\d{2}:?\d{2}|\b[A-Za-z]{1,5}|\))$/

/**
 * Returns Unix seconds. A time without a zone is UTC, whatever the machine's zone; undefined when the value is not a
 * time.
 */
export function parseDate(value: unknown, nowMs: number): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'string') return undefined
  if (value === 'now' || value === 'today') return nowMs / 1000
  const text = value.trim()
  if (/^-?\d{1,12}(\.\d+)?$/.test(text)) return Number(text)
  if (text.length > 64) return undefined
  const zoned = ZONE.test(text) ? text : /T\d/.test(text) ? `${text}Z` : `${text} UTC`
  const ms = Date.parse(zoned)
  return Number.isNaN(ms) ? undefined : ms / 1000
}

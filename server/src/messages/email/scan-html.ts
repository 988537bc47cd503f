// Finds the places in an email's HTML where we insert something: its links, and the start and end of its body. It scans
// the text once by the rules of HTML, so that everything between these places stays exactly as it is. Parsing and
// serializing would change the document.

import { decodeEntities } from '../../templates/render/html-to-text.ts'

export type HtmlLink = {
  /** The position of the value, including its quotes. */
  from: number
  to: number
  /** The address as a browser would read it; undefined where we cannot tell. */
  href: string | undefined
}

export type HtmlPositions = { links: HtmlLink[]; top: number; end: number }

/** Elements whose content is text, not markup. */
const RAW = new Set(['script', 'style', 'textarea', 'title', 'xmp', 'iframe', 'noembed', 'noframes'])
const LINKS = new Set(['a', 'area'])
const UNTRACKED = 'data-no-track'

const LETTER = /[a-zA-Z]/
const NAME = /[^\s/>]*/y
const GAP = /[\s/]*/y
const ATTRIBUTE = /([^\s/>][^\s/>=]*)(\s*=\s*)?/y
const BARE = /[^\s>]*/y

export function scanHtml(html: string): HtmlPositions {
  const links: HtmlLink[] = []
  let top = 0
  let end = html.length
  let hasBody = false
  for (let open = html.indexOf('<'); open >= 0; ) {
    const isEndTag = html[open + 1] === '/'
    const nameAt = open + (isEndTag ? 2 : 1)
    const first = html[nameAt] ?? ''
    let at: number
    if (LETTER.test(first)) {
      const tag = readTag(html, nameAt)
      // A tag that is never closed reaches to the end of the document and displays nothing.
      if (!tag) break
      at = tag.end
      const { name, link } = tag
      if (!isEndTag && link && LINKS.has(name)) links.push(link)
      if (isEndTag ? name === 'head' : name === 'html' || name === 'body') top = hasBody ? top : at
      if (name === 'body') {
        if (isEndTag) end = open
        else hasBody = true
      }
      if (!isEndTag && RAW.has(name)) at = endOfRaw(html, at, name)
    } else if (first === '!' || first === '?' || isEndTag) {
      at = endOfComment(html, open)
      if (/^<!doctype/i.test(html.slice(open, open + 9)) && !hasBody) top = at
    } else at = open + 1
    open = at < html.length ? html.indexOf('<', at) : -1
  }
  return { links, top, end: Math.max(end, top) }
}

/** Matches at this position. All patterns used here can match the empty string, so there is always a match. */
function matchAt(pattern: RegExp, html: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(html) ?? undefined
}
const skip = (pattern: RegExp, html: string, at: number) => at + (matchAt(pattern, html, at)?.[0].length ?? 0)

/** Returns undefined when the tag is not closed. If an attribute is repeated, the first one counts. */
function readTag(html: string, nameAt: number): { name: string; link: HtmlLink | undefined; end: number } | undefined {
  let at = skip(NAME, html, nameAt)
  const name = html.slice(nameAt, at).toLowerCase()
  let link: HtmlLink | undefined
  let isTracked = true
  for (;;) {
    at = skip(GAP, html, at)
    if (at >= html.length) return undefined
    if (html[at] === '>') return { name, link: isTracked ? link : undefined, end: at + 1 }
    const [whole = '', attribute = '', equals] = matchAt(ATTRIBUTE, html, at) ?? []
    at += whole.length
    const isHref = attribute.toLowerCase() === 'href'
    if (attribute.toLowerCase() === UNTRACKED) isTracked = false
    if (equals === undefined) continue
    const from = at
    const quote = html[at]
    if (quote === '"' || quote === "'") {
      const close = html.indexOf(quote, at + 1)
      if (close < 0) return undefined
      at = close + 1
      if (isHref) link ??= { from, to: at, href: readHref(html.slice(from + 1, close)) }
    } else {
      at = skip(BARE, html, at)
      if (isHref) link ??= { from, to: at, href: readHref(html.slice(from, at)) }
    }
  }
}

/** An entity without its semicolon may be part of an address: `&copy=1`. */
const ENTITY = /&(?:#\d{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)/g

/**
 * Returns undefined if the value contains an entity that we do not know: an untracked link is better than a wrong one.
 */
function readHref(value: string): string | undefined {
  let isKnown = true
  const decoded = value.replaceAll(ENTITY, (entity) => {
    const text = decodeEntities(entity)
    if (text === entity) isKnown = false
    return text
  })
  return isKnown ? decoded.replaceAll(/[\t\n\r]/g, '').trim() : undefined
}

const COMMENT_END = /--!?>/g

/** Also skips conditional comments for Outlook, whose content is left alone. */
function endOfComment(html: string, open: number): number {
  if (!html.startsWith('<!--', open)) return after(html, '>', open)
  if (html.startsWith('>', open + 4)) return open + 5
  if (html.startsWith('->', open + 4)) return open + 6
  COMMENT_END.lastIndex = open + 4
  return COMMENT_END.test(html) ? COMMENT_END.lastIndex : html.length
}

function after(html: string, text: string, from: number): number {
  const found = html.indexOf(text, from)
  return found < 0 ? html.length : found + text.length
}

function endOfRaw(html: string, from: number, name: string): number {
  const close = new RegExp(`</${name}(?=[\\s/>])`, 'gi')
  close.lastIndex = from
  return close.exec(html)?.index ?? html.length
}

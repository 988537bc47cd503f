// Creates the text part of an email from its HTML, in one pass over the characters, so that no input makes it slow. A
// library for this would bring a dozen packages and a full document tree, and this runs once for each recipient.

import { ownProperty } from '../../lib/own-property.ts'

/** The HTML entity names of U+00A0 to U+00FF, in order. */
const LATIN1 =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot ' +
  'cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml ' +
  'Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig ' +
  'agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ' +
  'ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml'
const NAMED = new Map([
  ...LATIN1.split(' ').map((name, i) => [name, String.fromCodePoint(160 + i)] as const),
  ...Object.entries({
    amp: '&',
    lt: '<',
    gt: '>',
    quot: '"',
    apos: "'",
    ndash: '–',
    mdash: '—',
    lsquo: '‘',
    rsquo: '’',
    sbquo: '‚',
    ldquo: '“',
    rdquo: '”',
    bdquo: '„',
    bull: '•',
    hellip: '…',
    euro: '€',
    trade: '™',
    larr: '←',
    rarr: '→',
    uarr: '↑',
    darr: '↓',
    minus: '−',
    infin: '∞',
    ne: '≠',
    le: '≤',
    ge: '≥',
    hearts: '♥',
    check: '✓',
    star: '☆',
    starf: '★',
    zwnj: '',
    zwj: '',
    ensp: ' ',
    emsp: ' ',
    thinsp: ' ',
    OElig: 'Œ',
    oelig: 'œ',
    Scaron: 'Š',
    scaron: 'š',
    dagger: '†',
    permil: '‰',
    lsaquo: '‹',
    rsaquo: '›',
  }),
])

const SKIPPED = new Set(['head', 'script', 'style', 'title', 'template', 'noscript', 'svg', 'math', 'object', 'xml'])
/** Elements that start a new line, with the number of empty lines that separate them. */
const BLOCKS: Record<string, number> = {
  address: 0,
  article: 0,
  aside: 0,
  blockquote: 1,
  center: 0,
  dd: 0,
  div: 0,
  dl: 1,
  dt: 0,
  fieldset: 0,
  figure: 1,
  footer: 0,
  form: 0,
  h1: 1,
  h2: 1,
  h3: 1,
  h4: 1,
  h5: 1,
  h6: 1,
  header: 0,
  hr: 0,
  li: 0,
  main: 0,
  nav: 0,
  ol: 1,
  p: 1,
  pre: 1,
  section: 0,
  table: 0,
  tr: 0,
  ul: 1,
}
const MAX_NUMBER = 0x10ffff

export function decodeEntities(text: string): string {
  return text.replaceAll(
    /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{1,31}));?/g,
    (whole, decimal, hex, name) => {
      if (name !== undefined) return NAMED.get(name) ?? whole
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
      return code === 0 || code > MAX_NUMBER || (code >= 0xd800 && code <= 0xdfff) ? '' : String.fromCodePoint(code)
    },
  )
}

export function htmlToText(html: string): string {
  const out = createLines()
  let skipping: string | undefined
  let link: { href: string; from: number } | undefined
  const lists: { next: number | undefined }[] = []
  let cell = false

  for (const { name, isEnd, attributes, text } of tokens(html)) {
    if (name === undefined) {
      if (skipping === undefined) out.write(decodeEntities(text))
      continue
    }
    if (skipping !== undefined) {
      if (isEnd && name === skipping) skipping = undefined
      continue
    }
    if (!isEnd && SKIPPED.has(name)) {
      skipping = name
      continue
    }
    const block = ownProperty(BLOCKS, name)
    if (block !== undefined) out.keepApart(block)
    if (name === 'br') out.endLine()
    else if (name === 'hr' && !isEnd) {
      out.write('----------')
      out.endLine()
    } else if (name === 'img' && !isEnd) out.write(attribute(attributes, 'alt'))
    else if (name === 'td' || name === 'th') {
      if (!isEnd && cell) out.write(' ')
      cell = isEnd
    } else if (name === 'tr') cell = false
    else if (name === 'ul' || name === 'ol') isEnd ? lists.pop() : lists.push({ next: name === 'ol' ? 1 : undefined })
    else if (name === 'li' && !isEnd) {
      const list = lists.at(-1)
      out.write(list?.next === undefined ? '* ' : `${list.next++}. `)
    } else if (name === 'a' && !isEnd) link = { href: attribute(attributes, 'href'), from: out.mark() }
    else if (name === 'a') {
      if (link && /^(https?|mailto|tel):|^\[/i.test(link.href)) out.cite(link.href, link.from)
      link = undefined
    }
  }
  return out.text()
}

/**
 * Collects text in pieces and collapses white space. It examines only the ends of pieces, because joining the text so
 * far would be slow.
 */
function createLines() {
  const pieces: string[] = []
  let isLineEmpty = true
  let endsWithSpace = false
  let emptyLines = Number.POSITIVE_INFINITY
  function write(text: string) {
    const collapsed = text.replaceAll(/[\t\n\f\r ]+/g, ' ')
    const piece = isLineEmpty || endsWithSpace ? collapsed.replace(/^ /, '') : collapsed
    if (piece === '') return
    pieces.push(piece)
    isLineEmpty = false
    endsWithSpace = piece.endsWith(' ')
  }
  function endLine() {
    emptyLines = isLineEmpty ? emptyLines + 1 : 0
    pieces.push('\n')
    isLineEmpty = true
  }
  return {
    write,
    endLine,
    /** Makes the following text start on a new line, after this many empty lines. */
    keepApart(lines: number) {
      if (!isLineEmpty) endLine()
      while (emptyLines < lines) endLine()
    },
    mark: () => pieces.length,
    /** Adds the address of a link behind its text, unless the text is the address. */
    cite(href: string, from: number) {
      const words = pieces.slice(from).join('').trim()
      if (words === '') write(href)
      else if (words !== href && words !== href.replace(/^(mailto|tel):/i, '')) write(` (${href})`)
    },
    text: () =>
      pieces
        .join('')
        .replaceAll('\u00a0', ' ')
        .split('\n')
        .map((line) => line.trimEnd())
        .join('\n')
        .replaceAll(/\n{3,}/g, '\n\n')
        .trim(),
  }
}

type HtmlToken = { name: string | undefined; isEnd: boolean; attributes: string; text: string }

/** Yields tags and the text between them. Malformed tags count as text; comments are skipped. */
function* tokens(html: string): Generator<HtmlToken> {
  let at = 0
  while (at < html.length) {
    const open = html.indexOf('<', at)
    const textEnd = open < 0 ? html.length : open
    if (textEnd > at) yield { name: undefined, isEnd: false, attributes: '', text: html.slice(at, textEnd) }
    if (open < 0) return
    if (html.startsWith('<!--', open)) {
      const end = html.indexOf('-->', open + 4)
      if (end < 0) return
      at = end + 3
      continue
    }
    const isEnd = html[open + 1] === '/'
    const nameAt = open + (isEnd ? 2 : 1)
    const isTag = /[a-zA-Z!?]/.test(html[nameAt] ?? '')
    const close = isTag ? endOfTag(html, nameAt) : open
    if (!isTag || close === 0) {
      // An unterminated tag extends to the end of the document.
      at = isTag ? html.length : open + 1
      yield { name: undefined, isEnd: false, attributes: '', text: html.slice(open, at) }
      continue
    }
    const inner = html.slice(nameAt, close)
    const name = /^[^\s/]*/.exec(inner)?.[0] ?? ''
    yield { name: name.toLowerCase(), isEnd, attributes: inner.slice(name.length), text: '' }
    at = close + 1
  }
}

/** The position after the tag, or 0 when it does not end. A `>` inside quotes belongs to a value. */
function endOfTag(html: string, from: number): number {
  let quote = ''
  for (let i = from; i < html.length; i++) {
    const char = html[i] as string
    if (quote !== '') {
      if (char === quote) quote = ''
    } else if (char === '"' || char === "'") quote = char
    else if (char === '>') return i
  }
  return 0
}

function attribute(attributes: string, name: string): string {
  for (const [, key = '', double, single, bare] of attributes.matchAll(
    /([^\s=/"']{1,64})\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))/g,
  ))
    if (key.toLowerCase() === name) return decodeEntities(double ?? single ?? bare ?? '').trim()
  return ''
}

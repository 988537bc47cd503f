// Renders guides as HTML: the part of Markdown that they use (headings, paragraphs, lists, tables, fenced code, links,
// emphasis). This is not a library because we write every page, and a renderer without raw HTML has nothing to
// sanitize: all text is escaped, and the only tags are those written here.

import { escapeHtml } from './html.ts'

export type Heading = { level: number; text: string; id: string }
export type RenderedMarkdown = { html: string; headings: Heading[] }

export type MarkdownLinks = {
  /** Resolves a link of a guide to a path on this server; undefined leaves the text without a link. */
  resolveLink: (href: string) => string | undefined
  /** Resolves inline code to a link, if there is one: `POST /notifications` to the description of that operation. */
  resolveCode?: (code: string) => string | undefined
}

type Rendering = MarkdownLinks & { headings: Heading[]; ids: Map<string, number>; isInLink: boolean }

export function renderMarkdown(text: string, links: MarkdownLinks): RenderedMarkdown {
  const rendering: Rendering = { ...links, headings: [], ids: new Map(), isInLink: false }
  const html = renderBlocks(text.replaceAll('\r\n', '\n').split('\n'), rendering)
  return { html, headings: rendering.headings }
}

/** Slugs are built as GitHub builds them, so that the same links work in both places. */
export const slugOf = (heading: string) =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')

const FENCE = /^(\s*)```(\S*)\s*$/
const HEADING = /^(#{1,6})\s+(.+?)\s*$/
const BULLET = /^( *)[-*] +(?=\S)/
const NUMBER = /^( *)(\d{1,9})\. +(?=\S)/
const DIVIDER = /^\|[\s:|-]+\|\s*$/
const isBlank = (line: string | undefined) => line === undefined || line.trim() === ''
const indentOf = (line: string) => line.length - line.trimStart().length
const startsList = (line: string) => BULLET.test(line) || NUMBER.test(line)
/**
 * Inside a paragraph, a number other than 1 at the start of a line is the end of a sentence that was wrapped there, not
 * a list.
 */
const interrupts = (line: string) =>
  HEADING.test(line) || FENCE.test(line) || BULLET.test(line) || /^ *1\. +\S/.test(line) || line.startsWith('|')

function renderBlocks(lines: string[], rendering: Rendering): string {
  const html: string[] = []
  let at = 0
  while (at < lines.length) {
    const line = lines[at] as string
    const heading = HEADING.exec(line)
    if (isBlank(line)) at++
    else if (heading) {
      html.push(renderHeading((heading[1] as string).length, heading[2] as string, rendering))
      at++
    } else if (FENCE.test(line)) {
      const end = findFenceEnd(lines, at)
      html.push(renderCode(lines.slice(at, end)))
      at = end
    } else if (line.startsWith('|') && DIVIDER.test(lines[at + 1] ?? '')) {
      const end = findEnd(lines, at, (next) => !next.startsWith('|'))
      html.push(renderTable(lines.slice(at, end), rendering))
      at = end
    } else if (startsList(line)) {
      const end = findListEnd(lines, at)
      html.push(renderList(lines.slice(at, end), rendering))
      at = end
    } else {
      const end = findEnd(lines, at + 1, (next) => isBlank(next) || interrupts(next))
      html.push(`<p>${renderInline(lines.slice(at, end).join('\n').trim(), rendering)}</p>`)
      at = end
    }
  }
  return html.join('\n')
}

function findEnd(lines: string[], from: number, isEnd: (line: string) => boolean): number {
  let at = from
  while (at < lines.length && !isEnd(lines[at] as string)) at++
  return at
}

const findFenceEnd = (lines: string[], from: number) =>
  Math.min(lines.length, findEnd(lines, from + 1, (line) => /^\s*```\s*$/.test(line)) + 1)

/** A list continues as long as lines are items of it, or are indented and so belong to an item. */
function findListEnd(lines: string[], from: number): number {
  const indent = indentOf(lines[from] as string)
  let at = from + 1
  while (at < lines.length) {
    const line = lines[at] as string
    if (isBlank(line)) {
      const next = lines[at + 1]
      if (next === undefined || isBlank(next) || (indentOf(next) <= indent && !startsList(next))) return at
    } else if (indentOf(line) <= indent && !startsList(line) && isBlank(lines[at - 1])) return at
    else if (indentOf(line) <= indent && interrupts(line) && !startsList(line)) return at
    at++
  }
  return at
}

function renderHeading(level: number, text: string, rendering: Rendering): string {
  const plain = text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/[`*]/g, '')
  const slug = slugOf(plain)
  const seen = rendering.ids.get(slug) ?? 0
  rendering.ids.set(slug, seen + 1)
  const id = escapeHtml(seen === 0 ? slug : `${slug}-${seen}`)
  rendering.headings.push({ level, text: plain, id })
  return `<h${level} id="${id}">${renderInline(text, rendering)}</h${level}>`
}

function renderCode(lines: string[]): string {
  const indent = indentOf(lines[0] as string)
  const isClosed = lines.length > 1 && /^\s*```\s*$/.test(lines.at(-1) as string)
  const code = lines
    .slice(1, isClosed ? -1 : undefined)
    .map((line) => line.slice(Math.min(indent, indentOf(line))))
    .join('\n')
  return `<pre tabindex="0"><code>${escapeHtml(code)}</code></pre>`
}

function renderTable([head = '', , ...rows]: string[], rendering: Rendering): string {
  const titles = cellsOf(head)
  const heads = titles.map((title) => `<th>${renderInline(title, rendering)}</th>`).join('')
  const body = rows.map((row) => {
    const cells = cellsOf(row).map((cell) => `<td>${renderInline(cell, rendering)}</td>`)
    return `<tr>${cells.join('')}</tr>`
  })
  const hasHead = titles.some((title) => title !== '')
  return `<div class="table" tabindex="0"><table>${hasHead ? `<thead><tr>${heads}</tr></thead>` : ''}<tbody>${body.join('')}</tbody></table></div>`
}

/** A bar inside code or after a backslash does not separate cells. */
function cellsOf(row: string): string[] {
  const inner = row.trim().replace(/^\|/, '').replace(/\|$/, '')
  const cells: string[] = ['']
  let isCode = false
  for (let at = 0; at < inner.length; at++) {
    const sign = inner[at] as string
    if (sign === '`') isCode = !isCode
    if (sign === '\\' && inner[at + 1] === '|') {
      cells.push(`${cells.pop()}|`)
      at++
    } else if (sign === '|' && !isCode) cells.push('')
    else cells.push(`${cells.pop()}${sign}`)
  }
  return cells.map((cell) => cell.trim())
}

function renderList(lines: string[], rendering: Rendering): string {
  const indent = indentOf(lines[0] as string)
  const number = NUMBER.exec(lines[0] as string)
  const items: string[][] = []
  for (const line of lines) {
    const mark = indentOf(line) === indent ? (BULLET.exec(line) ?? NUMBER.exec(line)) : null
    if (mark) items.push([line.slice(mark[0].length)])
    else items.at(-1)?.push(line)
  }
  const rendered = items.map(([first = '', ...more]) => {
    const depth = Math.min(...more.filter((line) => !isBlank(line)).map(indentOf))
    const inner = [first, ...more.map((line) => line.slice(Math.min(depth, indentOf(line))))]
    const html = renderBlocks(inner, rendering)
    // An item with a single paragraph is rendered without it, for tight spacing.
    const alone = /^<p>([\s\S]*)<\/p>$/.exec(html)?.[1]
    return `<li>${alone === undefined || alone.includes('<p>') ? html : alone}</li>`
  })
  if (!number) return `<ul>${rendered.join('')}</ul>`
  const start = number[2] === '1' ? '' : ` start="${Number(number[2])}"`
  return `<ol${start}>${rendered.join('')}</ol>`
}

/** Code comes first, because nothing inside it is markup. */
const INLINE =
  /(?<ticks>`+)(?<code>[\s\S]*?[^`])\k<ticks>(?!`)|<a id="(?<anchor>[\w-]+)"><\/a>|<(?<auto>https?:\/\/[^\s<>]+)>|\[(?<label>(?:[^[\]]|\[[^\]]*\])*)\]\((?<href>[^()\s]*)\)|\*\*(?<strong>(?:[^*]|\*(?!\*))+)\*\*|(?<![\w*])\*(?<em>[^*\s](?:[^*]*[^*\s])?)\*(?![\w*])|\\(?<literal>[!-/:-@[-`{-~])/g

function renderInline(text: string, rendering: Rendering): string {
  let html = ''
  let at = 0
  for (const match of text.matchAll(INLINE)) {
    html += escapeHtml(text.slice(at, match.index)) + renderMatch(match.groups ?? {}, rendering)
    at = match.index + match[0].length
  }
  return html + escapeHtml(text.slice(at))
}

function renderMatch(parts: Record<string, string | undefined>, rendering: Rendering): string {
  const { code, anchor, auto, label, href = '', strong, em, literal } = parts
  if (code !== undefined) return renderInlineCode(code.replaceAll('\n', ' ').trim(), rendering)
  if (anchor !== undefined) return `<a id="${escapeHtml(anchor)}"></a>`
  if (auto !== undefined) return linkTo(auto, escapeHtml(auto), rendering)
  if (label !== undefined) return linkTo(href, renderInline(label, { ...rendering, isInLink: true }), rendering)
  if (strong !== undefined) return `<strong>${renderInline(strong, rendering)}</strong>`
  if (em !== undefined) return `<em>${renderInline(em, rendering)}</em>`
  return escapeHtml(literal ?? '')
}

function renderInlineCode(code: string, { resolveCode, isInLink }: Rendering): string {
  const html = `<code>${escapeHtml(code)}</code>`
  const target = isInLink ? undefined : resolveCode?.(code)
  return target === undefined ? html : `<a href="${escapeHtml(target)}">${html}</a>`
}

function linkTo(href: string, words: string, { resolveLink }: Rendering): string {
  if (/^https?:\/\//i.test(href)) return `<a href="${escapeHtml(href)}" rel="noreferrer">${words}</a>`
  const target = href.startsWith('#') ? href : resolveLink(href)
  return target === undefined ? words : `<a href="${escapeHtml(target)}">${words}</a>`
}

// Prepares the HTML of an email for sending: tracks links, fills placeholders, and adds the pixel that reports opens. A
// message can turn off the tracking of clicks and of opens.

import { scanHtml } from './scan-html.ts'
import { type EmailUrls, fillPlaceholders, hasPlaceholder } from './urls.ts'

export type HtmlOptions = {
  urls: EmailUrls
  /** Signs the address that a link leads to; undefined if clicks are not tracked. */
  sign: ((url: string) => string) | undefined
  /** Whether to add the invisible image that reports when an email is opened. */
  hasPixel: boolean
  preheader: string | undefined
}

export function writeEmailHtml(html: string, { urls, sign, hasPixel, preheader }: HtmlOptions): string {
  const { links, top, end } = scanHtml(html)
  const edits: Edit[] = []
  if (preheader) edits.push({ from: top, to: top, text: preheaderOf(preheader) })
  if (sign)
    for (const { from, to, href } of links) {
      const target = targetOf(href)
      if (target !== undefined) edits.push({ from, to, text: `"${urls.click(sign(target), target)}"` })
    }
  if (hasPixel) edits.push({ from: end, to: end, text: pixelOf(urls) })
  return edited(html, edits, (text) => fillPlaceholders(text, urls))
}

/** Returns undefined for links that are not tracked: other schemes, anchors in the email itself, and our own URLs. */
function targetOf(href: string | undefined): string | undefined {
  if (href === undefined || !/^https?:\/\//i.test(href) || hasPlaceholder(href)) return undefined
  // `URL` keeps backslashes in the query, and the redirect of tracked links accepts none.
  return URL.parse(href)?.href.replaceAll('\\', '%5C')
}

type Edit = { from: number; to: number; text: string }

function edited(html: string, edits: readonly Edit[], between: (text: string) => string): string {
  let out = ''
  let at = 0
  for (const { from, to, text } of edits.toSorted((a, b) => a.from - b.from)) {
    out += between(html.slice(at, from)) + text
    at = to
  }
  return out + between(html.slice(at))
}

/** Email programs show the preheader beside the subject, and nowhere else. */
const preheaderOf = (text: string) =>
  `<div style="display:none;max-height:0;max-width:0;overflow:hidden;opacity:0;mso-hide:all">${escaped(text)}</div>`

const pixelOf = ({ pixel }: EmailUrls) =>
  `<img src="${pixel}" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0">`

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

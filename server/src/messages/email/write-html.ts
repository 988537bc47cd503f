// The HTML of a mail as it is sent: its links lead over us, its placeholders are filled, and it tells when it is opened;
// the first and the last unless the message says otherwise.

import { scanHtml } from './scan-html.ts'
import { type EmailUrls, fillPlaceholders, hasPlaceholder } from './urls.ts'

export type HtmlOptions = {
  urls: EmailUrls
  /** Of the address that a link leads to; undefined where clicks are not followed. */
  sign: ((url: string) => string) | undefined
  /** The invisible picture that tells when a mail is opened. */
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

/** Undefined for what is not followed: other schemes, places in the mail itself, and addresses that are ours already. */
function targetOf(href: string | undefined): string | undefined {
  if (href === undefined || !/^https?:\/\//i.test(href) || hasPlaceholder(href)) return undefined
  // A backslash stays one behind the question mark; where links are followed, none is let through.
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

/** Shown by mail programs beside the subject, and nowhere else. */
const preheaderOf = (text: string) =>
  `<div style="display:none;max-height:0;max-width:0;overflow:hidden;opacity:0;mso-hide:all">${escaped(text)}</div>`

const pixelOf = ({ pixel }: EmailUrls) =>
  `<img src="${pixel}" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0">`

const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

// Builds the HTML of an in-app message as a device shows it. Content given in fields becomes a page that loads nothing
// but its image, and in which every value is escaped as text.

import { ownProperty } from '../lib/own-property.ts'
import { bridgeScript, type DisplayLocation } from './bridge.ts'
import { CLOSE_ID, type InAppButton, type InAppContent } from './content.ts'
import { OUTPUT } from './liquid.ts'

/** The author's part of the page. It still contains its Liquid, which is rendered as HTML. */
export const buildPage = (content: InAppContent, location: DisplayLocation): string =>
  content.html ?? pageOf(content, location)

/** Inserts the script that communicates with the SDK before all others. */
export function addBridge(html: string, location: DisplayLocation): string {
  // The patterns exclude "<" within a tag. Otherwise, many unterminated tags would each cause a scan to the end of the
  // text.
  const start = /<head(\s[^<>]*)?>/i.exec(html) ?? /<html(\s[^<>]*)?>/i.exec(html) ?? /^\s*<!doctype[^<>]*>/i.exec(html)
  const at = start ? start.index + start[0].length : 0
  return `${html.slice(0, at)}${bridgeScript(location)}${html.slice(at)}`
}

function pageOf(content: InAppContent, location: DisplayLocation): string {
  const { title, body, image_url, image_alt, buttons = [], close_button } = content
  const parts = [
    close_button === false ? '' : button({ id: CLOSE_ID, text: '×', close: true }, 'class="cross" aria-label="Close"'),
    image_url ? `<img src="${escaped(image_url)}" alt="${escaped(image_alt ?? '')}">` : '',
    title ? `<h1>${withLiquid(title)}</h1>` : '',
    body ? `<p>${withLiquid(body)}</p>` : '',
    ...(buttons ?? []).map((it) => button(it, `class="button"${coloursOf(it)}`)),
  ]
  return `<!doctype html>
<html><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src https:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
<style>${STYLE}${location === 'full' ? 'body{min-height:100vh}' : ''}</style></head>
<body${coloursOf({ background_color: '#ffffff', text_color: '#000000', ...content })}>
${parts.filter((it) => it !== '').join('\n')}
</body></html>`
}

const STYLE =
  'body{margin:0;padding:calc(16px + var(--safe-area-top,0px)) 16px calc(16px + var(--safe-area-bottom,0px));' +
  'box-sizing:border-box;position:relative;font-family:-apple-system,Roboto,sans-serif;text-align:center}' +
  'img{max-width:100%;display:block;margin:0 auto 12px}h1{font-size:22px;margin:0 24px 8px}' +
  'p{font-size:16px;line-height:1.4;margin:0 0 12px;white-space:pre-line}' +
  'button{font:inherit;border:0;cursor:pointer}.button{display:block;width:100%;padding:12px;margin:8px 0 0;border-radius:8px;background:#0057ff;color:#ffffff}' +
  '.cross{position:absolute;top:calc(4px + var(--safe-area-top,0px));right:4px;width:40px;height:40px;font-size:24px;' +
  'background:none;color:inherit}'

/** Colors need no escaping, because validation allows only hexadecimal digits. */
function coloursOf({ background_color, text_color }: Pick<InAppContent, 'background_color' | 'text_color'>): string {
  const rules = [background_color && `background:${background_color}`, text_color && `color:${text_color}`].filter(
    Boolean,
  )
  return rules.length > 0 ? ` style="${rules.join(';')}"` : ''
}

function button(it: InAppButton, attributes: string): string {
  const action = {
    id: it.id,
    close: it.close ?? true,
    ...(it.name && { name: it.name }),
    ...(it.url && { url: it.url, url_target: it.url_target ?? 'webview' }),
    ...(it.prompt && { prompts: [it.prompt] }),
    ...((it.add_tags || it.remove_tags) && { tags: { adds: it.add_tags ?? {}, removes: it.remove_tags ?? [] } }),
  }
  return `<button ${attributes} data-action="${escaped(JSON.stringify(action))}">${withLiquid(it.text)}</button>`
}

/**
 * Escapes everything but the Liquid. Liquid becomes text only when it is rendered, and contains no HTML characters
 * itself.
 */
function withLiquid(text: string): string {
  let html = ''
  let from = 0
  for (const { 0: output, index } of text.matchAll(new RegExp(OUTPUT, 'g'))) {
    html += escaped(text.slice(from, index)) + output
    from = index + output.length
  }
  return html + escaped(text.slice(from))
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '{': '&#123;',
}
const escaped = (text: string) => text.replaceAll(/[&<>"'{]/g, (sign) => ownProperty(ENTITIES, sign) as string)

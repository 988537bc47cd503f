// What all pages share: frame, content security policy, colors. Nothing is loaded from other hosts.

import { hash } from 'node:crypto'

const ENTITIES = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
])
export const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (sign) => ENTITIES.get(sign) as string)

const hashSource = (text: string) => `'sha256-${hash('sha256', text, 'base64')}'`

/**
 * Only the page's own style and script run. Nothing but the icon is fetched, and nothing may be framed or submitted.
 */
export const policyFor = (style: string, script?: string) =>
  `default-src 'none'; style-src ${hashSource(style)}; ${script === undefined ? '' : `script-src ${hashSource(script)}; `}` +
  "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

export const pageHeaders = (policy: string) => ({
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
})

export type Page = { title: string; style: string; body: string; script?: string }

export const renderPage = ({ title, style, body, script }: Page) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">` +
  `<meta name="color-scheme" content="light dark"><title>${escapeHtml(title)}</title>` +
  `<link rel="icon" href="/favicon.ico" sizes="32x32"><link rel="icon" href="/favicon.svg" type="image/svg+xml">` +
  `<style>${style}</style></head><body>${body}${script === undefined ? '' : `<script>${script}</script>`}</body></html>`

export const BELL_PATH =
  'M16 3a2 2 0 0 1 2 2v.6c4.1.9 7 4.6 7 9v5.2l2.5 3.2c.6.8 0 2-1 2h-21c-1 0-1.6-1.2-1-2L7 19.8v-5.2c0-4.4 2.9-8.1 7-9V5a2 2 0 0 1 2-2zM12.5 27h7a3.5 3.5 0 0 1-7 0z'

/** Takes the color of the surrounding text. */
export const BELL = `<svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true"><path fill="currentColor" d="${BELL_PATH}"/></svg>`

/** Grays and one accent color; other colors mean a state. */
export const BASE_STYLE = `
:root{color-scheme:light dark;--ink:#1b2026;--soft:#5a646e;--line:#e0e4e8;--page:#fff;--wash:#f5f7f8;--code:#f5f7f8;--accent:#1b5e9b;--good:#1f6f43;--wait:#8a5a00;--bad:#a4262c;--other:#6b4aa0}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8eb;--soft:#98a3ad;--line:#2c343b;--page:#14181c;--wash:#1a2025;--code:#1a2025;--accent:#7db7f0;--good:#6fcf97;--wait:#e0b050;--bad:#f08a8e;--other:#bb9df0}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem;-webkit-text-size-adjust:100%}
body{margin:0;color:var(--ink);background:var(--page);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
a{color:var(--accent);text-underline-offset:.15em}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:2px}
h1,h2,h3,h4{line-height:1.25;overflow-wrap:anywhere}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
code{font-size:.88em;overflow-wrap:anywhere}
p code,td code,li code,dd code{background:var(--code);padding:.08rem .28rem;border-radius:4px}
pre{margin:0 0 1rem;padding:.8rem 1rem;background:var(--code);border:1px solid var(--line);border-radius:8px;overflow-x:auto;font-size:.84rem;line-height:1.5;tab-size:2}
pre code,li pre code{font-size:inherit;overflow-wrap:inherit;padding:0;background:none}
.soft{color:var(--soft)}
[hidden]{display:none!important}
@media(max-width:52rem){pre{white-space:pre-wrap;overflow-wrap:anywhere;padding:.7rem .8rem;font-size:.8rem}}
`

// The icon in the browser tab: a bell.

import { readFileSync } from 'node:fs'
import { BELL_PATH } from './html.ts'

export const FAVICON_SVG =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><style>path{fill:#1b5e9b}` +
  `@media(prefers-color-scheme:dark){path{fill:#7db7f0}}</style><path d="${BELL_PATH}"/></svg>`

/** For browsers that request it without having read a page, and for those that do not support SVG. */
export const readFaviconIco = (): Buffer => readFileSync(new URL('favicon.ico', import.meta.url))

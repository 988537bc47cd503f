import { readFileSync } from 'node:fs'

/** Of the product; the interface that it speaks has a version of its own. */
export const VERSION: string = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
).version

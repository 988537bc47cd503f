// Chance that can be repeated: the same names always give the same number, before a crash and after it, here and in a dry run.

import { hash } from 'node:crypto'

const BITS = 48

/** From 0 up to 1. */
export const pickNumber = (...names: string[]): number =>
  Number.parseInt(hash('sha256', names.join(' '), 'hex').slice(0, BITS / 4), 16) / 2 ** BITS

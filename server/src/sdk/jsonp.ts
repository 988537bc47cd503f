// JSON as a script that calls a function of the page: SDKs fetch their configuration this way before anything else is
// loaded.

import { invalid } from '../lib/errors.ts'

const NAME = /^[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*$/
const MAX_NAME_LENGTH = 128

/** Only a function name is accepted, so that the caller who chooses it cannot choose what code runs. */
export function readCallback(given: string): string {
  if (given.length > MAX_NAME_LENGTH || !NAME.test(given))
    throw invalid('callback must be the name of a JavaScript function')
  return given
}

/** Begins with a comment, so that no chosen name can make the answer look like a file of another type. */
export const asScript = (callback: string, json: string) => `/**/${callback}(${json});`

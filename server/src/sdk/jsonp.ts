// JSON as a script that calls a function of the page: how SDKs ask for their configuration before anything else is there.

import { invalid } from '../lib/errors.ts'

const NAME = /^[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*$/
const MAX_NAME_LENGTH = 128

/** Only the name of a function gets into the script; whoever chooses it must not choose what runs. */
export function readCallback(given: string): string {
  if (given.length > MAX_NAME_LENGTH || !NAME.test(given))
    throw invalid('callback must be the name of a JavaScript function')
  return given
}

/** Begins with a comment: no chosen name can make the answer look like a file of another kind. */
export const asScript = (callback: string, json: string) => `/**/${callback}(${json});`

/** What a person asks for by replying with one of the keywords that carriers recognize. */
export type OptOut = 'stop' | 'start' | 'help'

const WORDS: Record<OptOut, readonly string[]> = {
  stop: ['STOP', 'STOPALL', 'UNSUBSCRIBE', 'CANCEL', 'END', 'QUIT', 'REVOKE', 'OPTOUT'],
  start: ['START', 'YES', 'UNSTOP'],
  help: ['HELP', 'INFO'],
}

const meanings = new Map(
  Object.entries(WORDS).flatMap(([meaning, words]) => words.map((word) => [word, meaning as OptOut] as const)),
)

/**
 * The keyword must be the whole text, in any case, with or without punctuation around it: "please don't stop" is no
 * request.
 */
export const readOptOut = (text: string): OptOut | undefined =>
  meanings.get(text.replace(/^[\s\p{P}]+|[\s\p{P}]+$/gu, '').toUpperCase())

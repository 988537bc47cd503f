// What only the reader of an example knows stands in it as a variable, between signs that are in no example.

const OPEN = '\u27e6'
const CLOSE = '\u27e7'

export const variable = (name: string) => `${OPEN}${name.toUpperCase()}${CLOSE}`
export const hasVariable = (text: string) => text.includes(OPEN)
export const VARIABLES = new RegExp(`${OPEN}(\\w+)${CLOSE}`, 'g')
/** A text that is a variable and nothing else. */
export const readVariable = (text: string): string | undefined => new RegExp(`^${OPEN}(\\w+)${CLOSE}$`).exec(text)?.[1]

// Marks values that only the reader of an example knows. The delimiters appear in no example.

const OPEN = '\u27e6'
const CLOSE = '\u27e7'

export const variable = (name: string) => `${OPEN}${name.toUpperCase()}${CLOSE}`
export const hasVariable = (text: string) => text.includes(OPEN)
export const VARIABLES = new RegExp(`${OPEN}(\\w+)${CLOSE}`, 'g')
/** The name of the variable, if the text is a single variable. */
export const readVariable = (text: string): string | undefined => new RegExp(`^${OPEN}(\\w+)${CLOSE}$`).exec(text)?.[1]

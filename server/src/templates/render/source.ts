// What is rendered: texts with Liquid. The kind of each decides what it may contain and how values are inserted.

/**
 *   line     text of a push message: plain, no loops
 *   text     plain text: SMS
 *   url      an address: no loops; the result must still be an address
 *   header   a mail header line: the result has no line breaks, so that a value cannot add a line of its own
 *   address  like header, and an email address
 *   html     the body of an email: values are escaped, unless the template says `| raw`
 */
export type SourceKind = 'line' | 'text' | 'url' | 'header' | 'address' | 'html'
export type TemplateSource = { kind: SourceKind; text: string }

/**
 * The texts of one message to one person, by field. Items of one message share the object, so that it is sent once for
 * all of them.
 */
export type TemplateSources = Record<string, TemplateSource>

/** Everything that a template can see. It is plain data without functions. */
export type LiquidScope = Record<string, unknown>

/** The position of an error in a text; lines and columns count from 1. */
export type TemplateProblem = { field: string; line?: number; column?: number; message: string }

export const describeProblem = ({ field, line, column, message }: TemplateProblem) =>
  line === undefined ? `${field}: ${message}` : `${field}: line ${line}, column ${column}: ${message}`

/**
 * Objects of the public API that may not exist at all. A reference to such an object would leave a gap in every
 * message.
 */
export const ABSENT_OBJECTS = ['data_feed', 'dynamic_content'] as const
export type AbsentObject = (typeof ABSENT_OBJECTS)[number]

export const hasLiquid = (text: string) => /\{[{%]/.test(text)

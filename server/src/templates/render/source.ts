// What is rendered: texts with Liquid in them, each of a kind that decides what it may hold and how values go into it.

/**
 *   line     text of a push message: plain, no loops
 *   text     plain text: SMS
 *   url      an address: no loops; what comes out is an address still
 *   header   a line of a mail's header: what comes out has no line breaks, so that a value cannot add a line of its own
 *   address  the same, and an email address
 *   html     the body of a mail: values are escaped, unless the template says `| raw`
 */
export type SourceKind = 'line' | 'text' | 'url' | 'header' | 'address' | 'html'
export type TemplateSource = { kind: SourceKind; text: string }

/** The texts of one message to one person, by field. Items of one message share the object: it travels once for all of them. */
export type TemplateSources = Record<string, TemplateSource>

/** Everything a template can see. Plain data: nothing in it can be called. */
export type LiquidScope = Record<string, unknown>

/** Where a text is wrong; lines and columns count from 1. */
export type TemplateProblem = { field: string; line?: number; column?: number; message: string }

export const describeProblem = ({ field, line, column, message }: TemplateProblem) =>
  line === undefined ? `${field}: ${message}` : `${field}: line ${line}, column ${column}: ${message}`

/** Objects of the public interface that can be missing altogether. Naming one that is would leave a gap in every message. */
export const ABSENT_OBJECTS = ['data_feed', 'dynamic_content'] as const
export type AbsentObject = (typeof ABSENT_OBJECTS)[number]

export const hasLiquid = (text: string) => /\{[{%]/.test(text)

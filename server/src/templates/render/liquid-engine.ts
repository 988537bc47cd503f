// Liquid, configured so that a template can access only the data it is given: no files, no other templates, no
// prototypes. The limits here are the inner ones, which the engine itself checks while it runs. The outer limit is
// enforced on the process that runs the engine, which is killed from outside.

import { Liquid, LiquidError, type Template, type Token, Tokenizer, TypeGuards } from 'liquidjs'
import { ownProperty } from '../../lib/own-property.ts'
import { isEmail } from '../../users/subscriptions/subscription.ts'
import { configureFilters } from './liquid-filters.ts'
import type { AbsentObject, LiquidScope, SourceKind, TemplateSource } from './source.ts'
import { TIMEOUT_MESSAGE } from './worker-protocol.ts'

const ALLOWED_TAGS = new Set(
  '# assign break capture case comment continue cycle echo for if liquid raw unless'.split(' '),
)

/** In milliseconds. Slightly below the outer limit, because an error is cheaper than a new process. */
const RENDER_LIMIT_MS = 200
/** In the engine's own count of characters and entries that filters create. */
const MEMORY_LIMIT = 2_000_000
const MAX_SOURCE_LENGTH = 1_100_000
/** Parsed templates take about ten times the size of their text, and must fit into the process with everything else. */
const MAX_CACHED_LENGTH = 400_000

export const MAX_RENDERED_LENGTH: Record<SourceKind, number> = {
  line: 16_384,
  text: 16_384,
  url: 8_192,
  header: 4_096,
  address: 254,
  html: 2_000_000,
}

export class TemplateError extends Error {
  readonly line: number | undefined
  readonly column: number | undefined
  constructor(message: string, line?: number, column?: number) {
    super(message)
    this.line = line
    this.column = column
  }
}

export type LiquidEngine = {
  /** Throws a TemplateError when the text is not valid Liquid, or does something that its kind does not allow. */
  check(source: TemplateSource, absent: readonly AbsentObject[]): void
  render(source: TemplateSource, scope: LiquidScope, nowMs: number): string
}

export function createLiquidEngine(): LiquidEngine {
  let nowMs = 0
  const make = (options: { isHtml: boolean; hasLoops: boolean }) => {
    const liquid = new Liquid({
      ownPropertyOnly: true,
      strictFilters: true,
      templates: {},
      relativeReference: false,
      dynamicPartials: false,
      timezoneOffset: 0,
      locale: 'en-US',
      parseLimit: MAX_SOURCE_LENGTH,
      renderLimit: RENDER_LIMIT_MS,
      memoryLimit: MEMORY_LIMIT,
      ...(options.isHtml && { outputEscape: 'escape' }),
    })
    for (const name of Object.keys(liquid.tags)) if (!ALLOWED_TAGS.has(name)) delete liquid.tags[name]
    if (!options.hasLoops)
      liquid.registerTag('for', {
        parse() {
          throw new Error('for loops are not allowed in this field')
        },
        render: () => '',
      })
    configureFilters(liquid, () => nowMs, options.isHtml)
    return liquid
  }
  const plain = make({ isHtml: false, hasLoops: true })
  const line = make({ isHtml: false, hasLoops: false })
  const html = make({ isHtml: true, hasLoops: true })
  const engines: Record<SourceKind, Liquid> = { line, text: plain, url: line, header: plain, address: plain, html }

  const cache = createCache()
  function parse({ kind, text }: TemplateSource): Template[] {
    const liquid = engines[kind]
    return cache.get(liquid, text) ?? cache.put(liquid, text, liquid.parse(text))
  }

  return {
    check(source, absent) {
      translateErrors(() => {
        refuseAbsent(engines[source.kind], parse(source), absent)
        refuseIncompleteExpressions(engines[source.kind], source.text)
      })
    },
    render: (source, scope, now) =>
      translateErrors(() => {
        nowMs = now
        const rendered: string = engines[source.kind].renderSync(parse(source), scope)
        return sanitize(source.kind, rendered)
      }),
  }
}

/** Caches the parsed templates of each engine. The oldest are evicted when their texts get too long in total. */
function createCache() {
  const parsed = new Map<Liquid, Map<string, Template[]>>()
  let size = 0
  return {
    get: (liquid: Liquid, text: string) => parsed.get(liquid)?.get(text),
    put(liquid: Liquid, text: string, templates: Template[]): Template[] {
      if (text.length > MAX_CACHED_LENGTH) return templates
      if (size + text.length > MAX_CACHED_LENGTH) {
        parsed.clear()
        size = 0
      }
      size += text.length
      const own = parsed.get(liquid) ?? new Map<string, Template[]>()
      parsed.set(liquid, own.set(text, templates))
      return templates
    },
  }
}

const ABSENCE_REASONS: Record<AbsentObject, string> = {
  data_feed: 'this server fetches no feeds. Send what they hold as custom_data',
  dynamic_content: 'only a template with a field dynamic_content has it',
}

/** An absent object would render as a blank for all recipients, and only they would notice. */
function refuseAbsent(liquid: Liquid, templates: Template[], absent: readonly AbsentObject[]): void {
  const { globals } = liquid.analyzeSync(templates, { partials: false })
  for (const name of absent) {
    const [use] = ownProperty(globals, name) ?? []
    if (use)
      throw new TemplateError(`${name} is not available: ${ABSENCE_REASONS[name]}`, use.location.row, use.location.col)
  }
}

const CONDITIONS = new Set(['if', 'elsif', 'unless'])

/** LiquidJS reads `{{ first name }}` as `{{ name }}` and `{% if a == %}` as true, without telling the author. */
function refuseIncompleteExpressions(liquid: Liquid, text: string): void {
  let isComment = false
  for (const token of new Tokenizer(text).readTopLevelTokens(liquid.options)) {
    if (TypeGuards.isTagToken(token)) isComment = isComment ? token.name !== 'endcomment' : token.name === 'comment'
    if (isComment) continue
    const isCondition = TypeGuards.isTagToken(token) && CONDITIONS.has(token.name)
    if (!isCondition && !TypeGuards.isOutputToken(token)) continue
    const inner = isCondition
      ? token.tokenizer
      : new Tokenizer(token.input, liquid.options.operators, undefined, token.contentRange)
    if (isCompleteExpression(inner.readFilteredValue().initial.postfix) && isAtEnd(inner)) continue
    const [line, column] = token.getPosition() as [number, number]
    throw new TemplateError(`not a whole expression: ${clip(token.getText())}`, line, column)
  }
}

/** Whether the operands and operators form exactly one value. */
function isCompleteExpression(postfix: Token[]): boolean {
  let values = 0
  for (const token of postfix) {
    if (!TypeGuards.isOperatorToken(token)) values++
    else if (token.operator !== 'not') values--
    if (values < 1) return false
  }
  return values === 1
}

function isAtEnd(tokenizer: Tokenizer): boolean {
  tokenizer.skipBlank()
  return tokenizer.p >= tokenizer.N
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get into a header
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g

/** Makes the rendered text safe for its destination. */
function sanitize(kind: SourceKind, rendered: string): string {
  if (rendered.length > MAX_RENDERED_LENGTH[kind])
    throw new TemplateError(`the result is longer than ${MAX_RENDERED_LENGTH[kind]} characters`)
  if (kind === 'html') return rendered.toWellFormed().replaceAll('\0', '')
  if (kind === 'line' || kind === 'text') return rendered.toWellFormed().replaceAll('\0', '')
  const single = rendered.toWellFormed().replaceAll(CONTROLS, ' ').trim()
  if (kind === 'url' && /^(javascript|data|vbscript|file|blob):/i.test(single.replaceAll(/\s/g, '')))
    throw new TemplateError('the result is not an address that a message may open')
  if (kind === 'address' && single !== '' && !isEmail(single))
    throw new TemplateError('the result is not an email address')
  return single
}

const clip = (text: string) => (text.length > 80 ? `${text.slice(0, 80).toWellFormed()}…` : text)

/** Translates the engine's errors into messages with a position and a reason, but without engine internals. */
function translateErrors<Result>(run: () => Result): Result {
  try {
    return run()
  } catch (error) {
    if (error instanceof TemplateError) throw error
    if (!LiquidError.is(error)) throw new TemplateError(describeError(error as Error))
    const { token, originalError = error } = error as LiquidError & Partial<LiquidErrorCause>
    const [line, column] = token?.getPosition() ?? []
    throw new TemplateError(describeError(originalError as Error), line, column)
  }
}

type LiquidErrorCause = { token: { getPosition(): [number, number] }; originalError: Error }

function describeError({ message }: Error): string {
  if (/call stack/.test(message)) return 'is nested too deeply'
  if (/^template render limit/.test(message)) return TIMEOUT_MESSAGE
  if (/^parse length limit/.test(message))
    return `is too long: at most ${MAX_SOURCE_LENGTH} characters, MJML when it is compiled`
  if (/^memory alloc limit|Invalid (string|array) length/.test(message)) return 'takes too much memory'
  return clip(message.replace(/, line:\d+, col:\d+$/, ''))
}

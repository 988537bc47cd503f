// The content of an in-app message in one language: HTML written by its author, or a few fields from which
// build-page.ts builds HTML.

import Type, { type Static } from 'typebox'
import { AppError } from '../lib/errors.ts'
import { codePoints } from '../lib/text.ts'
import { isLink, isWebAddress } from '../templates/check-content.ts'
import { LANGUAGES } from '../templates/language.ts'
import { hasLiquid } from '../templates/render/source.ts'
import { findBadLiquid } from './liquid.ts'

/** Clients send null for fields that they leave out. */
const orNull = <Value>(type: string, options: object = {}) =>
  Type.Optional(Type.Unsafe<Value | null>({ type: [type, 'null'], ...options }))
const text = (maxLength: number, description: string) => orNull<string>('string', { maxLength, description })
const colour = (description: string) =>
  orNull<string>('string', { pattern: '^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})$', description })
const flag = (description: string) => orNull<boolean>('boolean', { description })
const oneOf = <Word extends string>(words: Word[], description: string) =>
  Type.Optional(Type.Unsafe<Word | null>({ enum: [...words, null], description }))

const InAppButton = Type.Object({
  id: Type.String({
    minLength: 1,
    maxLength: 128,
    description: 'What its clicks are counted by; unique in the message.',
  }),
  text: Type.String({ minLength: 1, maxLength: 128, description: 'May hold Liquid.' }),
  name: text(128, "Passed to the app's own listener."),
  url: text(2_048, 'Opened by a click: on the web or inside the app.'),
  url_target: oneOf(['browser', 'webview', 'replacement'], 'Where it opens. Defaults to `webview`.'),
  prompt: oneOf(['push', 'location'], 'Ask for this permission.'),
  add_tags: orNull<Record<string, string>>('object', {
    additionalProperties: { type: 'string', maxLength: 1_024 },
    maxProperties: 20,
    description: 'Tags to give to the user.',
  }),
  remove_tags: orNull<string[]>('array', { items: { type: 'string', maxLength: 255 }, maxItems: 20 }),
  close: flag('Closes the message. Defaults to true.'),
  background_color: colour('Such as `#0057ff`.'),
  text_color: colour('Such as `#ffffff`.'),
})
export type InAppButton = Static<typeof InAppButton>

export const MAX_BUTTONS = 10

export const InAppContent = Type.Object({
  html: text(
    500_000,
    'Instead of all other fields: the whole message as HTML, with or without scripts. May hold Liquid.',
  ),
  title: text(500, 'May hold Liquid.'),
  body: text(5_000, 'May hold Liquid. Line breaks are kept.'),
  image_url: text(2_048, 'An https address.'),
  image_alt: text(500, 'What the picture shows.'),
  background_color: colour('Defaults to white.'),
  text_color: colour('Defaults to black.'),
  close_button: flag('Shows a cross in the corner. Defaults to true.'),
  buttons: orNull<InAppButton[]>('array', { items: InAppButton, maxItems: MAX_BUTTONS }),
})
export type InAppContent = Static<typeof InAppContent>
export type InAppContents = Record<string, InAppContent>

/** The close button, which every message built from fields has unless it disables it. */
export const CLOSE_ID = 'close'

const CLICK_LABEL = /\bdata-onesignal-unique-label\s*=\s*(?:"([^"]*)"|'([^']*)')/gi
const PAGE_LABEL = /\bdata-page-id\s*=\s*(?:"([^"]*)"|'([^']*)')/gi
const MAX_LABELS = 100
const MAX_LABEL = 128

export type InAppLabels = { clickLabels: string[]; pageLabels: string[] }

/** Returns the checked content without null fields. All problems are reported at once. */
export function readContents(given: InAppContents): { contents: InAppContents; hasLiquid: boolean } & InAppLabels {
  const problems = [...findProblems(given)]
  if (problems.length > 0)
    throw new AppError('invalid', ...problems.slice(0, 20).map((title) => ({ code: 'request-0', title })))
  const contents: InAppContents = {}
  for (const [language, content] of Object.entries(given)) contents[language] = present(content)
  const all = Object.values(contents)
  return { contents, hasLiquid: all.some((it) => textsOf(it).some(([, text]) => hasLiquid(text))), ...labelsOf(all) }
}

function* findProblems(contents: InAppContents): Generator<string> {
  if (!contents.en) yield 'contents must have English content ("en"), which everybody gets whose language is not there'
  for (const [language, content] of Object.entries(contents)) {
    const place = `contents.${language.length > 40 ? `${language.slice(0, 40).toWellFormed()}…` : language}`
    if (!LANGUAGES.includes(language)) yield `${place} is not one of the languages ${LANGUAGES.join(', ')}`
    else yield* findContentProblems(present(content), place)
  }
  const { clickLabels, pageLabels } = labelsOf(Object.values(contents))
  for (const [labels, what] of [
    [clickLabels, 'things to click'],
    [pageLabels, 'pages'],
  ] as const) {
    if (labels.length > MAX_LABELS) yield `contents can have at most ${MAX_LABELS} ${what}`
    if (labels.some((it) => codePoints(it) > MAX_LABEL))
      yield `contents: the ids of ${what} can have at most ${MAX_LABEL} characters`
  }
}

function* findContentProblems(content: InAppContent, place: string): Generator<string> {
  for (const [field, text] of textsOf(content)) {
    const problem = findBadLiquid(text)
    if (problem) yield `${place}.${field}: ${problem}`
  }
  const { html, ...fields } = content
  if (html !== undefined) {
    if ((html as string).trim() === '') yield `${place}.html must not be empty`
    if (Object.keys(fields).length > 0) yield `${place} can have html or other fields, not both`
    return
  }
  const isEmpty = !content.title?.trim() && !content.body?.trim() && !content.image_url
  if (isEmpty) yield `${place} must have html, a title, a body or an image_url`
  if (content.image_url && !isPlain(content.image_url, (url) => /^https:/i.test(url) && isWebAddress(url)))
    yield `${place}.image_url must be an https address`
  yield* findButtonProblems(content.buttons ?? [], `${place}.buttons`)
}

function* findButtonProblems(buttons: InAppButton[], place: string): Generator<string> {
  const ids = buttons.map(({ id }) => id)
  for (const [i, { id, url }] of buttons.entries()) {
    if (ids.indexOf(id) < i) yield `${place}[${i}].id is that of another button`
    if (id === CLOSE_ID) yield `${place}[${i}].id "${CLOSE_ID}" is that of the cross in the corner`
    if (url && !isPlain(url, isLink)) yield `${place}[${i}].url must be an address such as https://example.com`
  }
}

/** Addresses may not contain Liquid, because a tag must not decide where a click leads. */
const isPlain = (url: string, isRight: (url: string) => boolean) =>
  !hasLiquid(url) && !/[\p{Cc}\u2028\u2029]/u.test(url) && isRight(url)

/** The texts that may contain Liquid, by their place. */
const textsOf = ({ html, title, body, buttons }: InAppContent): [string, string][] =>
  [
    ['html', html] as const,
    ['title', title] as const,
    ['body', body] as const,
    ...(buttons ?? []).map(({ text }, i) => [`buttons[${i}].text`, text] as const),
  ].flatMap(([field, text]) => (text ? [[field, text]] : []))

function labelsOf(contents: InAppContent[]): InAppLabels {
  const clickLabels = contents.flatMap(({ html, buttons, close_button }) =>
    html
      ? found(html, CLICK_LABEL)
      : [...(buttons ?? []).map(({ id }) => id), ...(close_button === false ? [] : [CLOSE_ID])],
  )
  const pageLabels = contents.flatMap(({ html }) => (html ? found(html, PAGE_LABEL) : []))
  return { clickLabels: [...new Set(clickLabels)], pageLabels: [...new Set(pageLabels)] }
}

const found = (html: string, label: RegExp) =>
  [...html.matchAll(label)].map(([, double, single]) => double ?? single ?? '').filter((it) => it !== '')

/** Removes null fields and unknown fields. */
function present(content: InAppContent): InAppContent {
  const kept = keep(content, Object.keys(InAppContent.properties)) as InAppContent
  if (kept.buttons)
    kept.buttons = kept.buttons.map((it) => keep(it, Object.keys(InAppButton.properties)) as InAppButton)
  return kept
}

const keep = (given: object, names: string[]) =>
  Object.fromEntries(
    Object.entries(given).filter(([name, value]) => names.includes(name) && value !== null && value !== undefined),
  )

// Selects the text in a recipient's language, for push, SMS, email and in-app messages.

/**
 * The language codes of the API, and the codes by which some devices know three of them: `no` (nb), `iw` (he), `in`
 * (id).
 */
export const LANGUAGES = (
  'en ar bs bg ca zh zh-Hans zh-Hant hr cs da nl et fi fr ka de el hi he hu id it ja ko lv lt ms nb pl fa pt pa ro ru sr sk es ' +
  'sv th tr uk vi no iw in'
).split(' ')

/** Texts by language, or one text for everybody. */
export type ByLanguage = string | Readonly<Record<string, string>>

/** Pairs of codes for the same language. */
const LANGUAGE_ALIASES: ReadonlyMap<string, string> = new Map(
  [
    ['no', 'nb'],
    ['iw', 'he'],
    ['in', 'id'],
  ].flatMap(([a = '', b = '']) => [
    [a, b],
    [b, a],
  ]),
)

/** The script of Chinese when only the region is known. */
const SCRIPTS: ReadonlyMap<string, string> = new Map([
  ['hans', 'zh-hans'],
  ['hant', 'zh-hant'],
  ['cn', 'zh-hans'],
  ['sg', 'zh-hans'],
  ['tw', 'zh-hant'],
  ['hk', 'zh-hant'],
  ['mo', 'zh-hant'],
])

/** The codes that devices use for languages with several codes. Each must be found by any of them. */
export const AMBIGUOUS_LANGUAGES = 'zh zh-Hans zh-Hant zh-CN zh-SG zh-TW zh-HK zh-MO no nb iw he in id'.split(' ')

/** The codes to try, in lower case, the best first. The fallback to English is not included. */
function candidateCodes(language: string): string[] {
  const [base = '', ...rest] = language.toLowerCase().split(/[-_]/)
  const regional = (base: string) => rest.map((_, n) => [base, ...rest.slice(0, rest.length - n)].join('-'))
  if (base === 'zh') {
    // An explicit script takes precedence over the one that a region implies.
    const script = SCRIPTS.get(
      rest.find((it) => it === 'hans' || it === 'hant') ?? rest.find((it) => SCRIPTS.has(it)) ?? '',
    )
    return script ? [...regional(base), script, base] : [...regional(base), base, 'zh-hans', 'zh-hant']
  }
  const other = LANGUAGE_ALIASES.get(base)
  return [...regional(base), base, ...(other ? [...regional(other), other] : [])]
}

/** Undefined when there is no text under any code of the language. */
export function matchLanguage<Text>(texts: Readonly<Record<string, Text>>, language: string): Text | undefined {
  const byCode = new Map(Object.entries(texts).map(([code, text]) => [code.toLowerCase(), text]))
  const code = candidateCodes(language).find((it) => byCode.has(it))
  return code === undefined ? undefined : byCode.get(code)
}

/** Returns the text in the person's language, in its base language (`pt` for `pt-BR`), or in English. */
export function textInLanguage(texts: ByLanguage | null | undefined, language: string | null | undefined) {
  if (texts === null || texts === undefined || typeof texts === 'string') return texts ?? undefined
  return matchLanguage(texts, language ?? '') ?? texts.en
}

/** Every text with its place: `email_subject`, or `email_subject.de`. */
export function textsByPath(field: string, texts: ByLanguage | null | undefined): [place: string, text: string][] {
  if (texts === null || texts === undefined) return []
  if (typeof texts === 'string') return [[field, texts]]
  return Object.entries(texts).map(([code, text]) => [`${field}.${code}`, text])
}

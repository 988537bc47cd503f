// MJML to HTML, with the Liquid in it unharmed. The compiler knows nothing of Liquid: it drops what stands between its elements,
// and takes `<`, `>` and quotes for its own. So each piece of Liquid travels as a plain word and is put back afterwards. A word
// that the compiler dropped is given to it again inside <mj-raw>; if it drops it even there, the author is told where.

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { compileFunction } from 'node:vm'
import { TextError } from './liquid-engine.ts'

type Compile = (source: string, options: object) => Compiled | Promise<Compiled>
type Compiled = { html: string; errors: { line: number; message: string; tagName: string }[] }

let compiler: Promise<Compile> | undefined

/** Loaded when first needed, as it takes its time. */
export function loadCompiler(): Promise<Compile> {
  compiler ??= load()
  return compiler
}

/**
 * The build for browsers: one file that knows no disk and no network, where the package for Node is 180 packages that know both. It
 * asks for one of them, to move styles into elements; that is refused instead. So it is run as a function whose `require` is ours.
 * The packages that it names as dependencies are not in use and not installed (`overrides` in package.json).
 */
async function load(): Promise<Compile> {
  const file = createRequire(import.meta.url).resolve('mjml-browser')
  const run = compileFunction(await readFile(file, 'utf8'), ['module', 'exports', 'require'], { filename: file })
  const module: { exports: { default?: Compile } } = { exports: {} }
  const treeOfHtml = {
    load() {
      throw new Error('styles with inline="inline" and mj-html-attributes are not supported')
    },
  }
  run(module, module.exports, (name: string) => {
    if (name !== 'cheerio') throw new Error(`the MJML compiler asks for ${name}, which it has not been given`)
    return treeOfHtml
  })
  return (module.exports.default ?? module.exports) as Compile
}

export const isMjml = (text: string) => /^\s*(<\?xml[^>]*>\s*)?(<!--[\s\S]{0,2000}?-->\s*)?<mjml[\s>]/i.test(text)

const LIQUID = /\{%-?\s*(raw|comment)\s*-?%\}[\s\S]*?\{%-?\s*end\1\s*-?%\}|\{\{[\s\S]*?\}\}|\{%[\s\S]*?%\}/g
const WORD = /lqd(\d+)zq/g
const wordOf = (index: number) => `lqd${index}zq`

type Piece = { liquid: string; at: number }

export async function compileMjml(text: string): Promise<string> {
  const include = text.search(/<mj-include\b/i)
  if (include >= 0) throw errorAt(text, include, 'mj-include is not supported: put the part itself here')
  // Not by `test`, which begins where it last found one.
  const word = text.search(WORD)
  if (word >= 0) throw errorAt(text, word, 'the text holds a word that the compiler needs for itself: lqd…zq')
  const pieces: Piece[] = []
  const worded = text.replaceAll(LIQUID, (liquid, ...rest) => {
    const at = rest.find((value) => typeof value === 'number') as number
    // Line breaks stay where they are, so that the compiler's line numbers are the author's.
    return `${wordOf(pieces.push({ liquid, at }) - 1)}${'\n'.repeat(liquid.split('\n').length - 1)}`
  })
  const first = await compileWorded(worded)
  const [dropped] = missing(first, pieces.length)
  if (dropped === undefined) return restore(first, pieces)
  const { liquid, at } = pieces[dropped] as Piece
  const noPlace = errorAt(text, at, `MJML has no place for ${liquid.slice(0, 80).toWellFormed()} here`)
  const second = await compileWorded(wrap(worded, missing(first, pieces.length))).catch(() => {
    throw noPlace
  })
  if (missing(second, pieces.length).size > 0) throw noPlace
  return restore(second, pieces)
}

async function compileWorded(source: string): Promise<string> {
  const compile = await loadCompiler()
  let compiled: Compiled
  try {
    compiled = await compile(source, { validationLevel: 'soft', keepComments: false, beautify: false, minify: false })
  } catch (error) {
    const { message } = error as Error
    throw new TextError(
      `MJML: ${/call stack/.test(message) ? 'is nested too deeply' : message.slice(0, 200).toWellFormed()}`,
    )
  }
  // A width or a colour that Liquid will fill in is none yet.
  const [problem] = compiled.errors.filter(({ message }) => !/lqd\d+zq/.test(message))
  if (problem) throw new TextError(`MJML: <${problem.tagName}> ${problem.message}`, problem.line, 1)
  return compiled.html
}

/** The pieces whose words are not there. */
function missing(html: string, count: number): Set<number> {
  const unseen = new Set(Array.from({ length: count }, (_, index) => index))
  for (const [, index] of html.matchAll(WORD)) unseen.delete(Number(index))
  return unseen
}

const wrap = (worded: string, dropped: Set<number>) =>
  worded.replaceAll(WORD, (word, index) => (dropped.has(Number(index)) ? `<mj-raw>${word}</mj-raw>` : word))

const restore = (html: string, pieces: Piece[]) =>
  html.replaceAll(WORD, (_, index) => pieces[Number(index)]?.liquid ?? '')

function errorAt(text: string, at: number, message: string): TextError {
  const before = text.slice(0, at).split('\n')
  return new TextError(message, before.length, (before.at(-1) ?? '').length + 1)
}

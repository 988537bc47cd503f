// Compiles MJML to HTML and preserves the Liquid in it. The compiler does not know Liquid: it drops text between its
// elements, and interprets `<`, `>` and quotes. Each piece of Liquid is therefore replaced by a plain word and restored
// afterwards. A word that the compiler drops is tried again inside <mj-raw>. If it is dropped even there, the author
// gets an error with its position.

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { compileFunction } from 'node:vm'
import { TemplateError } from './liquid-engine.ts'

type CompileMjml = (source: string, options: object) => MjmlOutput | Promise<MjmlOutput>
type MjmlOutput = { html: string; errors: { line: number; message: string; tagName: string }[] }

let compiler: Promise<CompileMjml> | undefined

/** Loaded on first use, because loading is slow. */
export function loadCompiler(): Promise<CompileMjml> {
  compiler ??= load()
  return compiler
}

/**
 * Loads the browser build: a single file without access to disk or network. The package for Node.js consists of 180
 * packages with access to both. The browser build requires one of them, for inlining styles, which is refused here. It
 * therefore runs as a function with our own `require`. The packages that it declares as dependencies are unused and not
 * installed (`overrides` in package.json).
 */
async function load(): Promise<CompileMjml> {
  const file = createRequire(import.meta.url).resolve('mjml-browser')
  const run = compileFunction(await readFile(file, 'utf8'), ['module', 'exports', 'require'], { filename: file })
  const module: { exports: { default?: CompileMjml } } = { exports: {} }
  const treeOfHtml = {
    load() {
      throw new Error('styles with inline="inline" and mj-html-attributes are not supported')
    },
  }
  run(module, module.exports, (name: string) => {
    if (name !== 'cheerio') throw new Error(`the MJML compiler asks for ${name}, which it has not been given`)
    return treeOfHtml
  })
  return (module.exports.default ?? module.exports) as CompileMjml
}

export const isMjml = (text: string) => /^\s*(<\?xml[^>]*>\s*)?(<!--[\s\S]{0,2000}?-->\s*)?<mjml[\s>]/i.test(text)

const LIQUID = /\{%-?\s*(raw|comment)\s*-?%\}[\s\S]*?\{%-?\s*end\1\s*-?%\}|\{\{[\s\S]*?\}\}|\{%[\s\S]*?%\}/g
const MARKER = /lqd(\d+)zq/g
const markerOf = (index: number) => `lqd${index}zq`

type LiquidPiece = { liquid: string; at: number }

export async function compileMjml(text: string): Promise<string> {
  const include = text.search(/<mj-include\b/i)
  if (include >= 0) throw errorAt(text, include, 'mj-include is not supported: put the part itself here')
  // Not `test`, which on a global pattern starts at the previous match.
  const word = text.search(MARKER)
  if (word >= 0) throw errorAt(text, word, 'the text holds a word that the compiler needs for itself: lqd…zq')
  const pieces: LiquidPiece[] = []
  const worded = text.replaceAll(LIQUID, (liquid, ...rest) => {
    const at = rest.find((value) => typeof value === 'number') as number
    // Keeps line breaks, so that the compiler's line numbers match the author's.
    return `${markerOf(pieces.push({ liquid, at }) - 1)}${'\n'.repeat(liquid.split('\n').length - 1)}`
  })
  const first = await compileSource(worded)
  const [dropped] = findMissing(first, pieces.length)
  if (dropped === undefined) return restore(first, pieces)
  const { liquid, at } = pieces[dropped] as LiquidPiece
  const noPlace = errorAt(text, at, `MJML has no place for ${liquid.slice(0, 80).toWellFormed()} here`)
  const second = await compileSource(wrap(worded, findMissing(first, pieces.length))).catch(() => {
    throw noPlace
  })
  if (findMissing(second, pieces.length).size > 0) throw noPlace
  return restore(second, pieces)
}

async function compileSource(source: string): Promise<string> {
  const compile = await loadCompiler()
  let compiled: MjmlOutput
  try {
    compiled = await compile(source, { validationLevel: 'soft', keepComments: false, beautify: false, minify: false })
  } catch (error) {
    const { message } = error as Error
    throw new TemplateError(
      `MJML: ${/call stack/.test(message) ? 'is nested too deeply' : message.slice(0, 200).toWellFormed()}`,
    )
  }
  // An attribute that Liquid will fill in, such as a width, is not valid yet, so errors about it are ignored.
  const [problem] = compiled.errors.filter(({ message }) => !/lqd\d+zq/.test(message))
  if (problem) throw new TemplateError(`MJML: <${problem.tagName}> ${problem.message}`, problem.line, 1)
  return compiled.html
}

/** The pieces whose words are missing from the HTML. */
function findMissing(html: string, count: number): Set<number> {
  const unseen = new Set(Array.from({ length: count }, (_, index) => index))
  for (const [, index] of html.matchAll(MARKER)) unseen.delete(Number(index))
  return unseen
}

const wrap = (worded: string, dropped: Set<number>) =>
  worded.replaceAll(MARKER, (word, index) => (dropped.has(Number(index)) ? `<mj-raw>${word}</mj-raw>` : word))

const restore = (html: string, pieces: LiquidPiece[]) =>
  html.replaceAll(MARKER, (_, index) => pieces[Number(index)]?.liquid ?? '')

function errorAt(text: string, at: number, message: string): TemplateError {
  const before = text.slice(0, at).split('\n')
  return new TemplateError(message, before.length, (before.at(-1) ?? '').length + 1)
}

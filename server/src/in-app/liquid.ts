// The Liquid of in-app messages: a tag of the user, optionally with a default. Nothing more is supported, because it
// must mean the same in two places: on the server when the user is known, and otherwise on the device, whose SDK passes
// its own tags to the page.

/** `{{ name }}` or `{{ name | default: 'x' }}`. bridge.ts gives the device the same expression. */
export const OUTPUT = String.raw`\{\{\s*([A-Za-z_][\w-]*)\s*(?:\|\s*default:\s*(?:'([^'<>&{}]*)'|"([^"<>&{}]*)")\s*)?\}\}`

/** Describes the first unsupported piece of Liquid; undefined when there is none. */
export function findBadLiquid(text: string): string | undefined {
  const rest = text.replaceAll(new RegExp(OUTPUT, 'g'), (output) => ' '.repeat(output.length))
  const at = rest.search(/\{[{%]/)
  if (at < 0) return undefined
  const before = text.slice(0, at).split('\n')
  const place = `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`
  return `${place}: only tags can be put in, as {{ name }} or {{ name | default: 'x' }}`
}

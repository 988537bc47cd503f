// The Liquid of in-app messages: a tag of the user, with or without a default. That little, because it has to mean the same in
// two places: here, where the user is known, and otherwise on the device, whose SDK hands its own tags to the page.

/** `{{ name }}` or `{{ name | default: 'x' }}`. The device has the same expression: see bridge.ts. */
export const OUTPUT = String.raw`\{\{\s*([A-Za-z_][\w-]*)\s*(?:\|\s*default:\s*(?:'([^'<>&{}]*)'|"([^"<>&{}]*)")\s*)?\}\}`

/** What is wrong with the first piece of Liquid that is none of ours; undefined when all is well. */
export function findBadLiquid(text: string): string | undefined {
  const rest = text.replaceAll(new RegExp(OUTPUT, 'g'), (output) => ' '.repeat(output.length))
  const at = rest.search(/\{[{%]/)
  if (at < 0) return undefined
  const before = text.slice(0, at).split('\n')
  const place = `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`
  return `${place}: only tags can be put in, as {{ name }} or {{ name | default: 'x' }}`
}

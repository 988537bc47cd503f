/** True when the caller prefers JSON to HTML. A caller without a preference gets the page. */
export function prefersJson(accept: string | undefined): boolean {
  let json = 0
  let html = 0
  for (const part of (accept ?? '').toLowerCase().split(',')) {
    const [type = '', ...parameters] = part.split(';').map((one) => one.trim())
    const weight = Number(parameters.find((one) => one.startsWith('q='))?.slice(2) ?? 1) || 0
    if (type === 'application/json' || /^application\/[\w.-]+\+json$/.test(type)) json = Math.max(json, weight)
    if (type === 'text/html' || type === 'application/xhtml+xml') html = Math.max(html, weight)
  }
  return json > html
}

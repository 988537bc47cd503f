// The interface for people: one page, made from the description for machines. Nothing is loaded from elsewhere.

import { hash } from 'node:crypto'
import type { ApiDescription, Operation, Parameter, Schema } from './openapi.ts'

const STYLE = `
:root{--ink:#1d2329;--soft:#5c6770;--line:#e1e5e9;--page:#fff;--wash:#f6f8f9;--get:#1f6f43;--post:#1b5e9b;--put:#8a5a00;--patch:#6b4aa0;--delete:#a4262c}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#9aa5ae;--line:#2e363d;--page:#14181c;--wash:#1c2227;--get:#6fcf97;--post:#7db7f0;--put:#e0b050;--patch:#bb9df0;--delete:#f08a8e}}
*{box-sizing:border-box}
body{margin:0;color:var(--ink);background:var(--page);font:16px/1.55 system-ui,sans-serif;display:grid;grid-template-columns:17rem minmax(0,1fr)}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1.2rem;border-right:1px solid var(--line);background:var(--wash);font-size:.88rem}
nav h2{font-size:.75rem;letter-spacing:.06em;text-transform:uppercase;color:var(--soft);margin:1.2rem 0 .3rem}
nav a{display:block;color:inherit;text-decoration:none;padding:.12rem 0}
nav a:hover,nav a:focus{text-decoration:underline}
nav input{width:100%;font:inherit;padding:.4rem .6rem;border:1px solid var(--line);border-radius:.4rem;background:var(--page);color:inherit}
main{padding:2rem clamp(1rem,4vw,4rem);max-width:62rem}
h1{margin:0 0 .4rem;font-size:1.8rem}
section{border-top:1px solid var(--line);padding:1.6rem 0}
section h3{margin:0 0 .4rem;font-size:1.2rem}
h4{margin:1.1rem 0 .3rem;font-size:.9rem;color:var(--soft)}
code{font:.88em ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere}
p code,td code{background:var(--wash);padding:.05rem .25rem;border-radius:.25rem}
.path{display:flex;gap:.7rem;align-items:baseline;background:var(--wash);border:1px solid var(--line);border-radius:.5rem;padding:.5rem .8rem;overflow:auto}
.method{font-weight:700;font-size:.82rem}
.get{color:var(--get)}.post{color:var(--post)}.put{color:var(--put)}.patch{color:var(--patch)}.delete{color:var(--delete)}
table{border-collapse:collapse;width:100%;font-size:.92rem}
td,th{text-align:left;vertical-align:top;padding:.35rem .8rem .35rem 0;border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--soft)}
td:first-child{white-space:nowrap}
.soft{color:var(--soft)}
[hidden]{display:none}
@media(max-width:50rem){body{display:block}nav{position:static;height:auto;border-right:0}}
`

const SCRIPT = `
const box=document.querySelector('nav input');
box.addEventListener('input',()=>{
  const words=box.value.toLowerCase().split(/\\s+/).filter(Boolean);
  for(const item of document.querySelectorAll('[data-words]'))
    item.hidden=!words.every((word)=>item.dataset.words.includes(word));
});
`

const source = (text: string) => `'sha256-${hash('sha256', text, 'base64')}'`

/** Only this page's own style and script run; nothing is fetched, framed or submitted. */
export const DOCS_POLICY =
  `default-src 'none'; style-src ${source(STYLE)}; script-src ${source(SCRIPT)}; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escaped = (text: string) => text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] as string)

/** Paragraphs and `code`, which is all that descriptions use. */
const prose = (text = '') =>
  text
    .split(/\n{2,}/)
    .filter(Boolean)
    .map((part) => `<p>${escaped(part).replace(/`([^`]+)`/g, '<code>$1</code>')}</p>`)
    .join('')

export function renderDocs(api: ApiDescription): string {
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const links = api.tags.map(({ name }) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(name))
    const items = own.map(
      ({ path, method, operation }) =>
        `<a href="#${escaped(operation.operationId)}" data-words="${words(path, method, operation)}">${escaped(operation.summary)}</a>`,
    )
    return `<h2>${escaped(name)}</h2>${items.join('')}`
  })
  const schemes = Object.entries(api.components.securitySchemes).map(
    ([name, scheme]) => `<tr><td><code>${escaped(name)}</code></td><td>${prose(String(scheme.description))}</td></tr>`,
  )
  const sections = api.tags.flatMap(({ name }) =>
    operations
      .filter(({ operation }) => operation.tags.includes(name))
      .map(({ path, method, operation }) => renderOperation(path, method, operation, api)),
  )
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">` +
    `<title>${escaped(api.info.title)} API</title><style>${STYLE}</style></head><body>` +
    `<nav aria-label="Operations"><input type="search" placeholder="Search" aria-label="Search operations">${links.join('')}</nav>` +
    `<main><h1>${escaped(api.info.title)} API</h1><p class="soft">Version ${escaped(api.info.version)} · <a href="openapi.json">openapi.json</a></p>` +
    `${prose(api.info.description)}<h4>Keys</h4><table>${schemes.join('')}</table>${sections.join('')}</main>` +
    `<script>${SCRIPT}</script></body></html>`
  )
}

const words = (path: string, method: string, { operationId, summary, tags }: Operation) =>
  escaped([method, path, operationId, summary, ...tags].join(' ').toLowerCase())

function renderOperation(path: string, method: string, operation: Operation, api: ApiDescription): string {
  const body = operation.requestBody?.content['application/json']?.schema
  const answers = Object.entries(operation.responses).map(([status, { description, content, headers }]) => {
    const schema = content && Object.values(content)[0]?.schema
    const extra = headers ? ` <span class="soft">with ${escaped(Object.keys(headers).join(', '))}</span>` : ''
    return `<tr><td><code>${escaped(status)}</code></td><td>${escaped(description)}${extra}${schema ? fieldsOf(schema, api, status < '300') : ''}</td></tr>`
  })
  return (
    `<section id="${escaped(operation.operationId)}" data-words="${words(path, method, operation)}">` +
    `<h3>${escaped(operation.summary)}</h3>` +
    `<div class="path"><span class="method ${escaped(method)}">${escaped(method.toUpperCase())}</span><code>${escaped(path)}</code></div>` +
    prose(operation.description) +
    (operation.parameters ? `<h4>Parameters</h4>${parameterTable(operation.parameters)}` : '') +
    (body ? `<h4>Body</h4>${fieldsOf(body, api, true)}` : '') +
    `<h4>Answers</h4><table>${answers.join('')}</table></section>`
  )
}

const parameterTable = (parameters: Parameter[]) =>
  `<table>${parameters
    .map(
      ({ name, in: place, required, description, schema }) =>
        `<tr><td><code>${escaped(name)}</code></td><td>${escaped(typeName(schema))} <span class="soft">in ${place}${required ? ', required' : ''}</span>${prose(description)}</td></tr>`,
    )
    .join('')}</table>`

const MAX_ROWS = 120

/** The fields of a schema as rows, inner ones with their whole path. */
function fieldsOf(schema: Schema, api: ApiDescription, inFull: boolean): string {
  if (!inFull) return ` <span class="soft">${escaped(typeName(schema))}</span>`
  const rows: string[] = []
  collect(resolve(schema, api), '', api, rows, 0)
  return rows.length === 0 ? `<p class="soft">${escaped(typeName(schema))}</p>` : `<table>${rows.join('')}</table>`
}

type Shape = Schema & { properties?: Record<string, Schema>; required?: string[]; items?: Schema; anyOf?: Schema[] }

function collect(schema: Shape, prefix: string, api: ApiDescription, rows: string[], depth: number): void {
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (rows.length >= MAX_ROWS) return
    const inner = resolve(property, api)
    const needed = schema.required?.includes(name) ? ' <span class="soft">required</span>' : ''
    const field = `${prefix}${name}`
    rows.push(
      `<tr><td><code>${escaped(field)}</code></td><td>${escaped(typeName(inner))}${needed}${prose(inner.description as string | undefined)}</td></tr>`,
    )
    if (depth >= 4) continue
    if (inner.items) collect(resolve(inner.items, api), `${field}[].`, api, rows, depth + 1)
    else collect(inner, `${field}.`, api, rows, depth + 1)
  }
}

function resolve(schema: Schema, api: ApiDescription): Shape {
  const name = typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined
  return ((name && api.components.schemas[name]) || schema) as Shape
}

function typeName(schema: Shape): string {
  if (typeof schema.$ref === 'string') return schema.$ref.split('/').at(-1) as string
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.anyOf) return [...new Set(schema.anyOf.map((branch) => typeName(branch)))].join(' | ')
  if (schema.type === 'array') return `list of ${schema.items ? typeName(schema.items) : 'anything'}`
  const type = Array.isArray(schema.type) ? schema.type.join(' | ') : String(schema.type ?? 'anything')
  const bounds = [
    schema.format,
    schema.maxLength !== undefined && `at most ${schema.maxLength} characters`,
    schema.minimum !== undefined && `from ${schema.minimum}`,
    schema.maximum !== undefined && `to ${schema.maximum}`,
    schema.default !== undefined && `default ${JSON.stringify(schema.default)}`,
  ].filter(Boolean)
  return bounds.length > 0 ? `${type} (${bounds.join(', ')})` : type
}

// The API reference for people: one page, generated from the OpenAPI description.

import type { ApiDescription, JsonSchema, Operation, Parameter } from '../openapi.ts'
import { exampleRequest } from './example-request.ts'
import type { Guide } from './guides.ts'
import { escapeHtml } from './html.ts'
import { type NavGroup, renderDocsPage } from './layout.ts'

/** The guide that explains a group of operations. */
const GUIDE_OF: Record<string, string> = {
  Users: 'api',
  Segments: 'api',
  Templates: 'messages',
  Messages: 'messages',
  Sending: 'messages',
  'Live activities': 'api',
  'In-app messages': 'in-app',
  'In-app messages for SDKs': 'in-app',
  Journeys: 'journeys',
  'Journey webhooks': 'journeys',
  Email: 'email',
  Texts: 'sms',
  'Event webhooks': 'webhooks',
  Reports: 'reports',
  Exports: 'reports',
  Outcomes: 'api',
  'API keys': 'accounts-and-keys',
  Apps: 'accounts-and-keys',
  SDKs: 'web-push',
  Server: 'operations',
}

export type ReferenceParts = {
  api: ApiDescription
  guides: readonly Guide[]
  /** Version of the product; the API has a version of its own. */
  version: string
  /** The address used in the examples. */
  origin: string
}

export type Described = { path: string; method: string; operation: Operation }

export const operationsOf = (api: ApiDescription): Described[] =>
  Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )

/** Renders paragraphs and `code`, which is all that descriptions use. */
const prose = (text = '') =>
  text
    .split(/\n{2,}/)
    .filter(Boolean)
    .map((part) => `<p>${escapeHtml(part).replace(/`([^`]+)`/g, '<code>$1</code>')}</p>`)
    .join('')

export function renderReference(parts: ReferenceParts): string {
  const { api, guides, version } = parts
  const all = operationsOf(api)
  const schemes = Object.entries(api.components.securitySchemes).map(
    ([name, { description }]) =>
      `<div><dt><code>${escapeHtml(name)}</code></dt><dd>${prose(String(description))}</dd></div>`,
  )
  const sections = api.tags.map(({ name }) => {
    const own = all.filter(({ operation }) => operation.tags.includes(name))
    return `<div data-group>${groupHeading(name, guides)}${own.map((one) => renderOperation(one, parts)).join('')}</div>`
  })
  return renderDocsPage({
    kind: 'reference',
    title: `${api.info.title} API`,
    top: { href: '/docs', title: 'API reference', words: '', isCurrent: true },
    groups: [
      ...(guides.length > 0 ? [{ title: 'Guides', isOpen: false, links: guides.map(guideLink) }] : []),
      ...api.tags.map(({ name }): NavGroup => ({ title: name, isOpen: true, links: linksOf(name, all) })),
    ],
    main:
      `<h1>${escapeHtml(api.info.title)} API</h1>` +
      `<p class="facts"><span>Carillon ${escapeHtml(version)}</span><span>Interface ${escapeHtml(api.info.version)}</span>` +
      `<a href="/openapi.json">openapi.json</a>${startLinks(guides)}</p>` +
      `${prose(api.info.description)}` +
      '<p>Examples take keys and ids from variables of your shell: <code>APP_ID</code>, <code>APP_KEY</code>, <code>ORG_KEY</code>. ' +
      'The first ones were printed at the first start, and are in <code>first-keys.json</code> in the data folder.</p>' +
      `<details><summary>Keys and tokens</summary><dl class="fields">${schemes.join('')}</dl></details>` +
      `<p id="none" class="soft" hidden>Nothing is called that.</p>${sections.join('')}`,
  })
}

const wordsOf = ({ path, method, operation: { operationId, summary, tags } }: Described) =>
  [method, path, operationId, summary, ...tags].join(' ').toLowerCase()

const linksOf = (tag: string, all: Described[]) =>
  all
    .filter(({ operation }) => operation.tags.includes(tag))
    .map((one) => ({ href: `#${one.operation.operationId}`, title: one.operation.summary, words: wordsOf(one) }))

/** The part of the title before the colon. */
const shortTitle = (title: string) => title.split(': ', 1)[0] as string

/** The search finds a guide by its headings too. */
export const guideLink = ({ slug, title, headings }: Guide) => ({
  href: `/docs/${slug}`,
  title: shortTitle(title),
  words: headings.map(({ text }) => text).join(' '),
})

function startLinks(guides: readonly Guide[]): string {
  const shown = guides.filter(({ slug }) => ['try-it', 'api', 'accounts-and-keys'].includes(slug))
  return shown
    .map(({ slug, title }) => `<a href="/docs/${escapeHtml(slug)}">${escapeHtml(shortTitle(title))}</a>`)
    .join('')
}

function groupHeading(name: string, guides: readonly Guide[]): string {
  const guide = guides.find(({ slug }) => Object.hasOwn(GUIDE_OF, name) && slug === GUIDE_OF[name])
  const link = guide
    ? `<a href="/docs/${escapeHtml(guide.slug)}">Guide: ${escapeHtml(shortTitle(guide.title))}</a>`
    : ''
  return `<h2 class="group">${escapeHtml(name)}${link}</h2>`
}

function renderOperation(one: Described, { api, origin }: ReferenceParts): string {
  const { path, method, operation } = one
  const body = operation.requestBody?.content['application/json']?.schema
  const id = escapeHtml(operation.operationId)
  return (
    `<section class="operation" id="${id}" data-words="${escapeHtml(wordsOf(one))}"><div>` +
    `<h3><a href="#${id}">${escapeHtml(operation.summary)}</a></h3>` +
    `<div class="path"><span class="method ${escapeHtml(method)}">${escapeHtml(method.toUpperCase())}</span><code>${escapeHtml(path)}</code></div>` +
    prose(operation.description) +
    (operation.parameters ? `<h4>Parameters</h4>${parameterList(operation.parameters)}` : '') +
    (body ? `<h4>Body</h4>${fieldsOf(body, api)}` : '') +
    `<details><summary>Answers</summary>${answersOf(operation, api)}</details></div>` +
    `<div class="sample">${renderExample(exampleRequest(api, path, method, origin))}</div></section>`
  )
}

function renderExample(example: ReturnType<typeof exampleRequest>): string {
  if (!example) return ''
  const tab = (language: string, title: string) =>
    `<button type="button" data-language="${language}" aria-pressed="false">${title}</button>`
  const code = (language: 'curl' | 'node') =>
    `<div class="in-${language}"><pre tabindex="0"><code>${escapeHtml(example[language])}</code></pre></div>`
  return `<h4>Example</h4><div class="tabs">${tab('curl', 'curl')}${tab('node', 'Node')}</div>${code('curl')}${code('node')}`
}

const field = (name: string, type: string, isNeeded: boolean, more: string, description?: string) =>
  `<div><dt><code>${escapeHtml(name)}</code> <span class="soft">${escapeHtml(type)}${more}</span>` +
  `${isNeeded ? ' <span class="needed">required</span>' : ''}</dt><dd>${prose(description)}</dd></div>`

const parameterList = (parameters: Parameter[]) =>
  `<dl class="fields">${parameters
    .map(({ name, in: place, required, description, schema }) =>
      field(name, typeName(schema), required, `, in the ${place}`, description),
    )
    .join('')}</dl>`

function answersOf({ responses }: Operation, api: ApiDescription): string {
  const rows = Object.entries(responses).map(([status, { description, content, headers }]) => {
    const schema = content && Object.values(content)[0]?.schema
    const extra = headers ? `, with ${Object.keys(headers).join(', ')}` : ''
    const type = schema && status >= '300' ? `, ${typeName(schema)}` : ''
    const fields = schema && status < '300' ? fieldsOf(schema, api) : ''
    return `<div><dt><code>${escapeHtml(status)}</code> ${escapeHtml(description)}<span class="soft">${escapeHtml(type + extra)}</span></dt><dd>${fields}</dd></div>`
  })
  return `<dl class="fields">${rows.join('')}</dl>`
}

const MAX_ROWS = 120

/** The fields of a schema as rows; nested fields are shown with their full path. */
function fieldsOf(schema: JsonSchema, api: ApiDescription): string {
  const rows: string[] = []
  collect(resolve(schema, api), '', api, rows, 0)
  return rows.length === 0
    ? `<p class="soft">${escapeHtml(typeName(schema))}</p>`
    : `<dl class="fields">${rows.join('')}</dl>`
}

type Shape = JsonSchema & {
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  anyOf?: JsonSchema[]
}

function collect(schema: Shape, prefix: string, api: ApiDescription, rows: string[], depth: number): void {
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    if (rows.length >= MAX_ROWS) return
    const inner = resolve(property, api)
    const path = `${prefix}${name}`
    const isNeeded = schema.required?.includes(name) ?? false
    rows.push(field(path, typeName(inner), isNeeded, '', inner.description as string | undefined))
    if (depth >= 4) continue
    if (inner.items) collect(resolve(inner.items, api), `${path}[].`, api, rows, depth + 1)
    else collect(inner, `${path}.`, api, rows, depth + 1)
  }
}

function resolve(schema: JsonSchema, api: ApiDescription): Shape {
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

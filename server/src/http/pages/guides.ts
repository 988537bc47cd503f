// Serves the guides of docs/ as pages. They are read on first use: a package without them still starts, and offers
// none.

import { readdirSync, readFileSync } from 'node:fs'
import { type Heading, renderMarkdown } from './markdown.ts'

const ROOT = new URL('../../../../', import.meta.url)

/** In the order in which a newcomer needs them. Guides that are not listed here come last. */
const GROUPS: Record<string, readonly string[]> = {
  'First steps': ['try-it', 'accounts-and-keys', 'api'],
  Sending: ['messages', 'web-push', 'email', 'email-feedback', 'email-metrics', 'sms', 'in-app', 'journeys'],
  Results: ['reports', 'webhooks'],
  Operating: ['settings', 'command-line', 'operations', 'threat-model', 'security'],
}
const MORE = 'More'
const DECISIONS = 'Decisions'
const ABOUT: readonly string[] = ['spec-coverage', 'licences']

export type Guide = {
  /** The part of the path after `/docs/`. */
  slug: string
  title: string
  group: string
  headings: Heading[]
}

export type Guides = {
  list(): readonly Guide[]
  /** Returns the guide and its content, or undefined if there is none of that name. */
  find(slug: string): { guide: Guide; html: string } | undefined
}

export type GuideOptions = {
  /** The folder that contains docs/ and SECURITY.md. */
  root?: URL
  /** Finds the page of an operation that a guide mentions as `POST /notifications`. */
  findOperation?: (mention: string) => string | undefined
}

export function createGuides({ root = ROOT, findOperation = () => undefined }: GuideOptions = {}): Guides {
  let all: Map<string, { guide: Guide; html: string }> | undefined
  const load = () => {
    all ??= new Map(sorted(render(findFiles(root), root, findOperation)).map((page) => [page.guide.slug, page]))
    return all
  }
  return { list: () => [...load().values()].map(({ guide }) => guide), find: (slug) => load().get(slug) }
}

type File = { slug: string; path: string }

function findFiles(root: URL): File[] {
  const inFolder = (folder: string, prefix: string) =>
    namesIn(new URL(folder, root)).map((name) => ({
      slug: `${prefix}${name.slice(0, -'.md'.length)}`,
      path: `${folder}${name}`,
    }))
  const guides = inFolder('docs/', '')
  if (guides.length === 0) return []
  const security = namesIn(root).filter((name) => name === 'SECURITY.md')
  return [
    ...guides,
    ...inFolder('docs/decisions/', 'decisions/'),
    ...security.map((path) => ({ slug: 'security', path })),
  ]
}

function namesIn(folder: URL): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.md'))
      .sort()
  } catch {
    return []
  }
}

function render(files: readonly File[], root: URL, findOperation: (mention: string) => string | undefined) {
  const slugs = new Map(files.map(({ path, slug }) => [`/${path}`, slug]))
  return files.map(({ slug, path }) => {
    const text = readFileSync(new URL(path, root), 'utf8')
    const { html, headings } = renderMarkdown(text, {
      resolveLink: (href) => {
        const { pathname, hash } = new URL(href, `http://carillon.invalid/${path}`)
        const target = slugs.get(pathname)
        return target === undefined ? undefined : `/docs/${target}${hash}`
      },
      resolveCode: findOperation,
    })
    return { guide: { slug, title: headings[0]?.text ?? slug, group: groupOf(slug), headings }, html }
  })
}

function groupOf(slug: string): string {
  if (slug.startsWith('decisions/')) return DECISIONS
  return Object.entries(GROUPS).find(([, slugs]) => slugs.includes(slug))?.[0] ?? MORE
}

const ORDER = Object.values(GROUPS).flat()

function sorted<Page extends { guide: Guide }>(pages: Page[]): Page[] {
  const place = ({ guide: { slug, group } }: Page) => {
    if (group === DECISIONS) return ORDER.length + 2
    if (ABOUT.includes(slug)) return ORDER.length + 1
    return ORDER.includes(slug) ? ORDER.indexOf(slug) : ORDER.length
  }
  return pages.toSorted((a, b) => place(a) - place(b) || (a.guide.slug < b.guide.slug ? -1 : 1))
}

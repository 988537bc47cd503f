// The guides as the server shows them: nothing of their Markdown is left over, and every link leads somewhere.

import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createGuides } from '../src/http/pages/guides.ts'

const guides = createGuides()
const pages = guides.list().map(({ slug }) => ({ slug, html: guides.find(slug)?.html ?? '' }))
const idsOf = (html: string) => new Set([...html.matchAll(/ id="([^"]*)"/g)].map((match) => match[1]))

test('every file of docs/ is a guide', () => {
  const files = readdirSync(new URL('../../docs/', import.meta.url)).filter((name) => name.endsWith('.md'))
  expect(pages.map(({ slug }) => `${slug}.md`)).toEqual(expect.arrayContaining(files))
})

test.each(pages)('$slug is whole', ({ slug, html }) => {
  const words = html
    .replaceAll(/<pre[\s\S]*?<\/pre>/g, '')
    .replaceAll(/<code>[\s\S]*?<\/code>/g, '')
    .replaceAll(/<[^>]*>/g, '')
  expect(words).not.toMatch(/```|`|\*\*|\]\(|^#{1,6} |^\|/m)
  for (const [, href = ''] of html.matchAll(/ href="([^"]*)"/g)) {
    if (/^https?:/.test(href)) continue
    const [path = '', id] = href.split('#')
    const target = path === '' ? slug : path.replace(/^\/docs\//, '')
    const page = guides.find(target)
    expect(page, `${slug} links to ${href}`).toBeDefined()
    if (id !== undefined) expect(idsOf(page?.html ?? ''), `${slug} links to ${href}`).toContain(id)
  }
})

test('no link of a guide is lost', () => {
  for (const { slug, html } of pages) {
    const path = slug === 'security' ? '../../SECURITY.md' : `../../docs/${slug}.md`
    const text = readFileSync(new URL(path, import.meta.url), 'utf8').replaceAll(/```[\s\S]*?```/g, '')
    const links = [...text.matchAll(/\]\([^()\s]+\)|<https?:[^>]+>/g)].length
    expect([...html.matchAll(/<a href=/g)].length, slug).toBe(links)
  }
})

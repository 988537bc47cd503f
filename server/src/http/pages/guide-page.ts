import type { Guide } from './guides.ts'
import { type NavGroup, type NavLink, renderDocsPage } from './layout.ts'
import { guideLink } from './reference.ts'

const REFERENCE: NavLink = { href: '/docs', title: 'API reference', words: '' }

export const renderGuide = ({ guide, html }: { guide: Guide; html: string }, guides: readonly Guide[]): string =>
  renderDocsPage({
    kind: 'guide',
    title: `${guide.title} · Carillon`,
    top: REFERENCE,
    groups: [...new Set(guides.map(({ group }) => group))].map((group) => groupOf(group, guide, guides)),
    main: `<article>${html}</article>`,
  })

/** Lists the chapters of the open guide below it. */
const groupOf = (group: string, open: Guide, guides: readonly Guide[]): NavGroup => ({
  title: group,
  isOpen: group === open.group || !['More', 'Decisions'].includes(group),
  links: guides
    .filter((guide) => guide.group === group)
    .flatMap((guide) => {
      const isCurrent = guide.slug === open.slug
      const chapters = isCurrent ? guide.headings.filter(({ level }) => level === 2) : []
      return [
        { ...guideLink(guide), isCurrent },
        ...chapters.map(({ text, id }): NavLink => ({ href: `#${id}`, title: text, words: text, isDeep: true })),
      ]
    }),
})

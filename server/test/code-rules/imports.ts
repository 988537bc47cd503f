// Who may import whom. The table is ARCHITECTURE.md's; Biome tells the part of it that paths can say while one types.

import { dirname, join, normalize } from 'node:path'
import type { Node } from 'typescript/unstable/ast'
import { SyntaxKind } from 'typescript/unstable/ast'
import {
  isCallExpression,
  isExportDeclaration,
  isImportDeclaration,
  isNamedExports,
  isNamedImports,
  isStringLiteral,
} from 'typescript/unstable/ast/is'
import { type Sources, walk } from '../source.ts'

/** A domain calls those before it, never those after. */
export const DOMAINS = [
  'apps',
  'users',
  'events',
  'segments',
  'templates',
  'sending',
  'email',
  'outcomes',
  'messages',
  'in-app',
  'reports',
  'exports',
  'feedback',
  'journeys',
  'analytics',
  'sdk',
]

/** `to` is a path below server/src, or the name of a package. */
export type Import = { from: string; to: string; isType: boolean; names: string[] }

const FOLDERS: Record<string, readonly string[]> = {
  lib: [],
  storage: ['lib'],
  http: ['lib'],
  channels: ['lib'],
  sink: ['lib'],
  queue: ['storage', 'lib'],
  limits: ['storage', 'lib'],
}

/** Folders that may import everything, and that only they themselves may import. '' is server/src itself. */
const TOP: readonly string[] = ['', 'composition', 'settings', 'process', 'cli']

/** What http asks of the world is declared there, and the domain that answers must know the shape of the question. */
const PORTS = {
  file: 'http/route.ts',
  domain: 'apps',
  names: ['AppGate', 'KeyLookup', 'KeyRecord'],
}

/** Packages with one door, so that what goes through it can be watched there. Types are free. */
const DOORS: Record<string, { folders: readonly string[]; because: string }> = {
  pg: { folders: ['storage'], because: 'statements go through storage/db.ts' },
  'node:http': { folders: ['http', 'channels', 'sink'], because: 'domains declare routes as data' },
}

const folderOf = (path: string) => (path.includes('/') ? (path.split('/')[0] as string) : '')
const isRoutes = (path: string) => /(^|[/-])routes\.ts$/.test(path)
const isStore = (path: string) => /(^|[/-])store\.ts$/.test(path)

/** Why the import may not be, or undefined. */
export function refuse({ from, to, isType, names }: Import): string | undefined {
  const [own, other] = [folderOf(from), folderOf(to)]
  // Stand-ins of providers are for trying things out; what runs in production must not know of them.
  if (other === 'sink' && !['sink', 'cli'].includes(own) && from !== 'main.ts')
    return 'only main.ts and the command line start the stand-ins of providers'
  // The composition and the operator's commands put everything together.
  if (TOP.includes(own)) return undefined
  if (!to.endsWith('.ts'))
    return !isType && DOORS[to] && !DOORS[to].folders.includes(own) ? DOORS[to].because : undefined
  const isDomain = DOMAINS.includes(own)
  if (!isDomain && !FOLDERS[own]) return `the folder ${own} has no place in the table`
  if (TOP.includes(other)) return 'only the composition knows the composition'
  if (isRoutes(to) && DOMAINS.includes(other)) return 'routes are listed in composition/routes.ts, and called by nobody'
  if (own === other) return undefined
  if (!isDomain) return FOLDERS[own]?.includes(other) ? undefined : `${own} may import ${only(FOLDERS[own] ?? [])}`
  if (
    to === PORTS.file &&
    own === PORTS.domain &&
    names.length > 0 &&
    names.every((name) => PORTS.names.includes(name))
  )
    return undefined
  if (isStore(from))
    return ['storage', 'lib'].includes(other) ? undefined : 'a store may import its own files, storage and lib'
  if (isRoutes(from))
    return ['http', 'lib'].includes(other) ? undefined : 'routes may import their own files, http and lib'
  if (['storage', 'queue', 'lib'].includes(other) || to === 'channels/channel.ts') return undefined
  // What a push or a mail says, in words that no provider uses.
  if (['channels/push/content.ts', 'channels/email/message.ts'].includes(to) && isType) return undefined
  // Names of push providers and what they serve: data alone.
  if (to === 'channels/push/catalog.ts') return undefined
  // What a refusal of a mail means is the same whoever brings it.
  if (to === 'channels/email/classify-bounce.ts') return undefined
  if (other === 'channels') return 'a domain knows the contract of channels, and no provider'
  if (!DOMAINS.includes(other)) return `a domain may not import ${other}`
  return DOMAINS.indexOf(other) < DOMAINS.indexOf(own) ? undefined : `${other} comes after ${own}`
}

const only = (folders: readonly string[]) =>
  folders.length === 0 ? 'nothing of ours' : `${folders.join(' and ')} alone`

export function findImports({ files }: Sources): Import[] {
  return files.flatMap(({ path, file }) => {
    const found: Import[] = []
    const add = (specifier: Node | undefined, isType: boolean, names: string[]) => {
      if (!specifier || !isStringLiteral(specifier)) return
      const { text } = specifier
      found.push({ from: path, to: text.startsWith('.') ? normalize(join(dirname(path), text)) : text, isType, names })
    }
    walk(file, (node) => {
      if (isImportDeclaration(node)) {
        const clause = node.importClause
        const named = clause?.namedBindings && isNamedImports(clause.namedBindings) ? clause.namedBindings.elements : []
        const isWhole =
          !clause || clause.name !== undefined || (clause.namedBindings !== undefined && named.length === 0)
        const isType =
          clause?.phaseModifier === SyntaxKind.TypeKeyword || (!isWhole && named.every(({ isTypeOnly }) => isTypeOnly))
        add(node.moduleSpecifier, isType, isWhole ? [] : named.map((it) => (it.propertyName ?? it.name).getText()))
      } else if (isExportDeclaration(node)) {
        const named = node.exportClause && isNamedExports(node.exportClause) ? node.exportClause.elements : []
        add(
          node.moduleSpecifier,
          node.isTypeOnly,
          named.map((it) => (it.propertyName ?? it.name).getText()),
        )
      } else if (isCallExpression(node) && node.expression.kind === SyntaxKind.ImportKeyword)
        add(node.arguments[0], false, [])
    })
    return found
  })
}

/** One cycle for each set of files that import each other, type imports included. */
export function findCycles(imports: readonly Import[]): string[][] {
  const next = new Map<string, string[]>()
  for (const { from, to } of imports) next.set(from, [...(next.get(from) ?? []), to])
  const done = new Set<string>()
  const cycles: string[][] = []
  const visit = (file: string, trail: string[]) => {
    const start = trail.indexOf(file)
    if (start >= 0) cycles.push(trail.slice(start))
    if (start >= 0 || done.has(file)) return
    for (const to of next.get(file) ?? []) visit(to, [...trail, file])
    done.add(file)
  }
  for (const file of next.keys()) visit(file, [])
  return cycles
}

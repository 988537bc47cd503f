// What only certain files may do, because everybody else is handed the result: read the clock, the environment, the
// network, and write to the terminal.

import type { Node } from 'typescript/unstable/ast'
import { isCallExpression, isIdentifier, isNewExpression, isPropertyAccessExpression } from 'typescript/unstable/ast/is'
import { ownerOf, type Sources, walk } from '../source.ts'
import { findImports, type Import } from './imports.ts'

type Rule = {
  name: string
  /** Files, or folders with a slash at the end. */
  allowed: readonly string[]
  instead: string
  breaks(node: Node): boolean
}

const isRead = (node: Node, object: string, property: RegExp) =>
  isPropertyAccessExpression(node) && node.expression.getText() === object && property.test(node.name.text)

const isCallOf = (node: Node, name: string) =>
  isCallExpression(node) && isIdentifier(node.expression) && node.expression.text === name

export const RULES: readonly Rule[] = [
  {
    name: 'clock',
    allowed: ['lib/clock.ts'],
    instead: 'time is an argument; ask the clock that the caller was given',
    breaks: (node) =>
      isRead(node, 'Date', /^now$/) ||
      (isNewExpression(node) && node.expression.getText() === 'Date' && (node.arguments ?? []).length === 0) ||
      isCallOf(node, 'Date'),
  },
  {
    name: 'environment',
    // Programs that we start need a PATH to be found on.
    allowed: ['main.ts', 'cli/main.ts', 'storage/embedded/account.ts'],
    instead: 'settings are read once, in settings/config.ts, from what main.ts hands in',
    breaks: (node) => isRead(node, 'process', /^env$/),
  },
  {
    name: 'terminal',
    allowed: ['main.ts', 'cli/', 'process/first-keys.ts', 'composition/write-openapi.ts'],
    instead: 'what a server has to say goes to its log',
    breaks: (node) => isRead(node, 'console', /./) || isRead(node, 'process', /^(stdout|stderr)$/),
  },
  {
    name: 'network',
    allowed: [],
    instead: 'requests to others go through one client that refuses private addresses',
    breaks: (node) =>
      isCallOf(node, 'fetch') ||
      isRead(node, 'globalThis', /^fetch$/) ||
      isRead(node, 'http', /^(request|get)$/) ||
      isRead(node, 'https', /^(request|get)$/),
  },
]

/** Modules that reach out, and the files that may. */
const REACHING = /^(node:)?(http|https|http2|net|tls|dgram|undici|smpp)$/
const MAY_REACH: Record<string, string> = {
  'channels/dial.ts': 'opens every connection to an address that somebody gave, and judges it first',
  'channels/outbound.ts': 'the one client for such addresses; its sockets come from dial.ts',
  'channels/sms/smpp-link.ts': 'speaks to a message centre over a socket that dial.ts opened',
  'sink/sms/smpp.ts': 'a message centre that listens on loopback, and calls nobody',
  'sink/email/smtp.ts': 'a mail server that listens on loopback, and calls nobody',
  'channels/push/http/open-tls.ts': 'TLS on a connection that dial.ts opened',
  'channels/push/http/h2-connection.ts': 'HTTP/2 on a connection that open-tls.ts opened',
  'channels/push/http/h1-connection.ts': 'HTTP/1.1 on connections that open-tls.ts opened',
}
/** They listen, or take an address apart; nobody is reached. */
const HARMLESS = new Set([
  'createServer',
  'createSecureServer',
  'createSecureContext',
  'constants',
  'isIP',
  'isIPv4',
  'isIPv6',
  'BlockList',
  'SocketAddress',
])

const isAllowed = (path: string, allowed: readonly string[]) =>
  allowed.some((place) => (place.endsWith('/') ? path.startsWith(place) : path === place))

export function findForbiddenWords(sources: Sources): string[] {
  const found: string[] = []
  for (const { path, file } of sources.files) {
    const rules = RULES.filter(({ allowed }) => !isAllowed(path, allowed))
    walk(file, (node) => {
      for (const { name, instead, breaks } of rules)
        if (breaks(node)) found.push(`${path} ${ownerOf(node)}: ${node.getText()} (${name}: ${instead})`)
    })
  }
  return [
    ...found,
    ...findImports(sources)
      .filter(reachesOut)
      .map(({ from, to }) => `${from} imports ${to} (network)`),
  ]
}

const reachesOut = ({ from, to, isType, names }: Import) =>
  REACHING.test(to) && !isType && !MAY_REACH[from] && !(names.length > 0 && names.every((name) => HARMLESS.has(name)))

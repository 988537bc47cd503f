// Names that somebody else chose must not be looked up with `object[name]` or `name in object`: those also find what every
// object inherits (`constructor`, `toString`, `__proto__`). The type tells: a name of ours is a union of literals, or a
// key of the object; a name of others is a string.

import type { Node } from 'typescript/unstable/ast'
import { SyntaxKind } from 'typescript/unstable/ast'
import {
  isAsExpression,
  isBinaryExpression,
  isDeleteExpression,
  isElementAccessExpression,
  isForInStatement,
} from 'typescript/unstable/ast/is'
import { ownerOf, type Sources, walk } from '../source.ts'

/** Where such a name is looked up all the same, and why that is safe. Functions as `file function`, or whole files. */
const ALLOWED: Readonly<Record<string, string>> = {
  'lib/own-property.ts': 'the lookup that everybody else uses',
  'settings/config.ts': 'names of settings are ours',
  'http/read-query.ts': 'a query has no prototype',
  'http/serve.ts': 'parameters have the names that the route gives them, headers those that handlers ask for',
  'http/openapi.ts': 'about our own routes',
  'http/pages/reference.ts': 'about our own routes',
  'http/pages/example-request.ts': 'about our own routes',
  'http/pages/sample.ts': 'about our own routes',
  'http/plan.ts': 'about our own routes',
  'storage/sql.ts': 'goes through the names that a row has',
  'apps/credentials/p12-worker.ts open': 'a constant of the library',
  'messages/accept/read-targeting.ts readAliases': 'the object has no prototype',
  'channels/outbound.ts openOutbound': 'addresses of other protocols than the two were refused before',
}
/** The operator's commands, and stand-ins of providers: they serve no strangers. */
const FOLDERS_LEFT_OUT = ['cli/', 'sink/']

export function findForeignLookups({ files, checker }: Sources): string[] {
  const isForeign = (key: Node): boolean => {
    const type = checker.getTypeAtLocation(withoutCast(key))
    const text = type ? checker.typeToString(type) : 'unknown'
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as the compiler writes a template of any text
    return text === 'string' || text === 'any' || text === 'unknown' || text.includes('${string}')
  }
  const found: string[] = []
  for (const { path, file } of files) {
    if (FOLDERS_LEFT_OUT.some((folder) => path.startsWith(folder)) || path in ALLOWED) continue
    walk(file, (node) => {
      const isLookup = isElementAccessExpression(node)
        ? !isWritten(node) &&
          !isKeyOfLoop(node.expression, node.argumentExpression) &&
          isForeign(node.argumentExpression)
        : isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.InKeyword && isForeign(node.left)
      const owner = ownerOf(node)
      if (isLookup && !(`${path} ${owner}` in ALLOWED))
        found.push(
          `${path} ${owner}: ${node.getText()} (lookup: use own() of lib/own-property.ts, Object.hasOwn or a Map)`,
        )
    })
  }
  return found
}

/** A cast says what somebody hoped for. */
const withoutCast = (key: Node) => (isAsExpression(key) ? key.expression : key)

/** Writing is about one object of ours; the name `__proto__` is refused in bodies. */
const isWritten = (node: Node) =>
  isDeleteExpression(node.parent) ||
  (isBinaryExpression(node.parent) &&
    node.parent.left === node &&
    /^(\?\?|\|\||&&)?=$/.test(node.parent.operatorToken.getText()))

/** `for (const name in object) … object[name]`. */
function isKeyOfLoop(object: Node, key: Node): boolean {
  for (let at: Node | undefined = key; at; at = at.parent)
    if (isForInStatement(at) && at.expression.getText() === object.getText())
      return at.initializer.getText().endsWith(` ${withoutCast(key).getText()}`)
  return false
}

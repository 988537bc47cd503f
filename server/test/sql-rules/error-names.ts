// On a cluster the names of constraints and tables in an error carry the number of a shard, or are absent.

import { isBindingElement, isPropertyAccessExpression } from 'typescript/unstable/ast/is'
import { ownerOf, type Sources, walk } from '../source.ts'

const NAMES = /^(constraint|constraint_name|constraintName|table_name)$/
const OF_ERRORS = /\b(error|err|cause|failure|reason)\b|DatabaseError/i

export function findErrorNames({ files }: Sources): string[] {
  const found: string[] = []
  for (const { path, file } of files)
    walk(file, (node) => {
      const isRead = isPropertyAccessExpression(node)
      if (!isRead && !isBindingElement(node)) return
      const name = isRead ? node.name.text : (node.propertyName ?? node.name)?.getText()
      const isOfError =
        isRead && /^(table|column|detail)$/.test(name ?? '') && OF_ERRORS.test(node.expression.getText())
      if (NAMES.test(name ?? '') || isOfError) found.push(`${path} ${ownerOf(node)}: ${node.getText()}`)
    })
  return found
}

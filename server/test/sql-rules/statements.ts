// Every statement in the sources, with nested fragments spliced in as the `sql` tag does at run time. Where a fragment has
// several forms, the statement has as many. Read from the code, so that a statement no test runs is held to the rules too.

import type {
  Expression,
  Node,
  ParameterDeclaration,
  TaggedTemplateExpression,
  TemplateLiteral,
} from 'typescript/unstable/ast'
import {
  isArrowFunction,
  isAsExpression,
  isBinaryExpression,
  isBlock,
  isCallExpression,
  isConditionalExpression,
  isFunctionDeclaration,
  isFunctionExpression,
  isIdentifier,
  isNewExpression,
  isNonNullExpression,
  isNoSubstitutionTemplateLiteral,
  isParameterDeclaration,
  isParenthesizedExpression,
  isReturnStatement,
  isSatisfiesExpression,
  isStringLiteral,
  isTaggedTemplateExpression,
  isTemplateExpression,
  isVariableDeclaration,
} from 'typescript/unstable/ast/is'
import { type Symbol as Name, SymbolFlags, type Type, TypeFlags, type UnionType } from 'typescript/unstable/sync'
import { ownerOf, type Sources, walk } from '../source.ts'
import { isStatement } from './parse.ts'

export type Statement = {
  /** File and the name of what holds it: `users/store.ts insertUsers`. */
  at: string
  text: string
  /** Written as a string and not with the tag: nothing keeps values out of its text. */
  isPlainText: boolean
  /** The types of the values it binds, in order. */
  valueTypes: string[]
}

/** What keeps a statement from being read. */
export type Problem = { at: string; says: string }

export type Found = { statements: Statement[]; problems: Problem[] }

type Form = { text: string; valueTypes: string[] }
type Arguments = Map<Name['id'], Expression>

/** Stands for a bound value until all are numbered. */
const VALUE = '\u0000'
const MAX_DEPTH = 20

class CannotFollow extends Error {}

export function findStatements({ checker, project, files }: Sources): Found {
  const found: Found = { statements: [], problems: [] }
  const spliced = new Set<Node>()
  const fragments: { node: Node; at: string }[] = []

  for (const { path, file } of files)
    walk(file, (node) => {
      const at = `${path} ${ownerOf(node)}`
      if (isTag(node)) {
        const forms = follow(() => formsOf(node, new Map(), 0), at)
        if (!forms) return
        if (forms.every(({ text }) => isStatement(numbered(text))))
          for (const { text, valueTypes } of forms)
            found.statements.push({ at, text: numbered(text), isPlainText: false, valueTypes })
        else fragments.push({ node, at })
      } else if (isNewExpression(node) && node.expression.getText() === 'Sql') {
        const text = literalText(node.arguments?.[0])
        if (text === undefined) found.problems.push({ at, says: 'the text of new Sql(…) is made elsewhere' })
        else if (text !== '') found.statements.push({ at, text, isPlainText: true, valueTypes: [] })
      } else {
        const text = isTakenElsewhere(node) ? undefined : literalText(node)
        if (text !== undefined && looksLikeSql(text) && isStatement(text))
          found.statements.push({ at, text, isPlainText: true, valueTypes: [] })
      }
    })

  for (const { node, at } of fragments)
    if (!spliced.has(node)) found.problems.push({ at, says: `neither a statement nor part of one: ${node.getText()}` })
  return found

  function follow(run: () => Form[], at: string): Form[] | undefined {
    try {
      return run()
    } catch (error) {
      if (!(error instanceof CannotFollow)) throw error
      found.problems.push({ at, says: error.message })
      return undefined
    }
  }

  /** Whatever the tag is called where it is used. */
  function isTag(node: Node): node is TaggedTemplateExpression {
    return isTaggedTemplateExpression(node) && isFragment(node)
  }

  function isFragment(node: Node): boolean {
    const type = checker.getTypeAtLocation(node)
    return type !== undefined && mayBeSql(type)
  }

  function mayBeSql(type: Type): boolean {
    if (type.flags & TypeFlags.Union) return (type as UnionType).getTypes().some(mayBeSql)
    return type.getSymbol()?.name === 'Sql'
  }

  function typeName(node: Node): string {
    const type = checker.getTypeAtLocation(node)
    return type ? checker.typeToString(type) : 'unknown'
  }

  function formsOf(node: Node, given: Arguments, depth: number): Form[] {
    if (depth > MAX_DEPTH) throw new CannotFollow('a fragment that contains itself')
    const next = (inner: Node, arguments_ = given) => formsOf(inner, arguments_, depth + 1)

    if (isTag(node)) {
      if (depth > 0) spliced.add(node)
      return spansOf(node.template).reduce<Form[]>(
        (forms, { before, value }) => {
          const inner: Form[] =
            value === undefined
              ? [{ text: '', valueTypes: [] }]
              : isFragment(value)
                ? next(value)
                : [{ text: VALUE, valueTypes: [typeName(value)] }]
          return forms.flatMap((form) =>
            inner.map(({ text, valueTypes }) => ({
              text: form.text + before + text,
              valueTypes: [...form.valueTypes, ...valueTypes],
            })),
          )
        },
        [{ text: '', valueTypes: [] }],
      )
    }
    if (isParenthesizedExpression(node) || isAsExpression(node) || isSatisfiesExpression(node))
      return next(node.expression)
    if (isNonNullExpression(node)) return next(node.expression)
    if (isConditionalExpression(node)) return [...next(node.whenTrue), ...next(node.whenFalse)]
    if (isBinaryExpression(node)) {
      const sides = [node.left, node.right].filter(isFragment)
      if (sides.length > 0) return sides.flatMap((side) => next(side))
    }
    if (isNewExpression(node)) {
      const text = literalText(node.arguments?.[0])
      if (text !== undefined) return [{ text, valueTypes: [] }]
    }
    if (isCallExpression(node) && isIdentifier(node.expression)) {
      const made = declarationOf(node.expression)
      if (made && isCallable(made.node)) {
        const inner: Arguments = new Map(given)
        made.node.parameters.forEach((parameter, i) => {
          const name = checker.getSymbolAtLocation(parameter.name)
          const argument = node.arguments[i]
          if (name && argument) inner.set(name.id, argument)
        })
        const results = resultsOf(made.node)
        if (results.length > 0) return results.flatMap((result) => next(result, inner))
      }
    }
    if (isIdentifier(node)) {
      const made = declarationOf(node)
      const argument = made && given.get(made.name.id)
      if (argument) return next(argument)
      if (made && isParameterDeclaration(made.node)) return fromCallers(made.node, (value) => next(value))
      if (made && made.node !== node && !isCallable(made.node)) return next(made.node)
    }
    throw new CannotFollow(`what ${node.getText()} puts into the statement cannot be followed`)
  }

  /** A fragment handed in as a parameter is whatever the callers hand in. */
  function fromCallers(parameter: Node, next: (argument: Node) => Form[]): Form[] {
    const owner = parameter.parent
    const place = isCallable(owner) ? owner.parameters.indexOf(parameter as ParameterDeclaration) : -1
    const name = isFunctionDeclaration(owner) ? owner.name : isVariableDeclaration(owner.parent) && owner.parent.name
    const uses = name && place >= 0 ? checker.getReferencedSymbolsForNode(name, name.getStart()) : []
    const values = uses
      .flatMap(({ references }) => references.flatMap((use) => use.resolve(project)?.parent ?? []))
      .flatMap((call) => (isCallExpression(call) ? (call.arguments[place] ?? []) : []))
    if (values.length === 0) throw new CannotFollow(`nobody is seen to hand in ${parameter.getText()}`)
    return values.flatMap(next)
  }

  /** What a name stands for: a function, a parameter, or the value of a constant. */
  function declarationOf(node: Node): { name: Name; node: Node } | undefined {
    let name = checker.getSymbolAtLocation(node)
    if (name && name.flags & SymbolFlags.Alias) name = checker.getAliasedSymbol(name)
    const declared = name?.valueDeclaration?.resolve(project)
    if (!name || !declared) return undefined
    if (isVariableDeclaration(declared)) {
      const isConstant = /^const\b/.test(declared.parent.getText())
      return declared.initializer && isConstant ? { name, node: declared.initializer } : undefined
    }
    return { name, node: declared }
  }
}

const isTakenElsewhere = ({ parent }: Node) =>
  parent !== undefined && (isTaggedTemplateExpression(parent) || isNewExpression(parent))

const isCallable = (node: Node) => isArrowFunction(node) || isFunctionDeclaration(node) || isFunctionExpression(node)

function resultsOf(node: Node): Node[] {
  if (!isCallable(node) || !node.body) return []
  if (!isBlock(node.body)) return [node.body]
  const results: Node[] = []
  const collect = (inner: Node) => {
    if (isCallable(inner)) return
    if (isReturnStatement(inner) && inner.expression) results.push(inner.expression)
    inner.forEachChild(collect)
  }
  node.body.forEachChild(collect)
  return results
}

function spansOf(template: TemplateLiteral): { before: string; value: Expression | undefined }[] {
  if (isNoSubstitutionTemplateLiteral(template)) return [{ before: template.text, value: undefined }]
  const texts = [template.head.text, ...template.templateSpans.map(({ literal }) => literal.text)]
  return texts.map((before, i) => ({ before, value: template.templateSpans[i]?.expression }))
}

function numbered(text: string): string {
  let n = 0
  return text.replaceAll(VALUE, () => `$${++n}`)
}

/** The text of a literal, with a name in the place of what is put into it. */
function literalText(node: Node | undefined): string | undefined {
  if (!node) return undefined
  if (isStringLiteral(node) || isNoSubstitutionTemplateLiteral(node)) return node.text
  if (isTemplateExpression(node))
    return [node.head.text, ...node.templateSpans.map((it) => it.literal.text)].join('something')
  return undefined
}

const VERBS =
  'select|insert|update|delete|with|merge|create|alter|drop|truncate|copy|analyze|vacuum|set|reset|lock|listen|notify|grant|do|call|refresh|reindex|cluster|explain|execute|prepare'
const SQL = new RegExp(`^\\s*(${VERBS})\\s+\\S`)
// "select a user" is a statement too, as far as the parser is concerned.
const PROSE = /^select [a-z ]+$/

const looksLikeSql = (text: string) => SQL.test(text) && !(PROSE.test(text) && !/ from /.test(text))

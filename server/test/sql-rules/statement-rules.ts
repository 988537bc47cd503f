// What a statement must be like so that one PostgreSQL and a cluster distributed by app_id run it alike, and so that time
// stays an argument.

import { as, list, names, parse, type Tree, text, unwrap, visitNodes } from './parse.ts'

export type StatementRule =
  | 'one app'
  | 'rows from apps'
  | 'app_id stays'
  | 'read before write'
  | 'parents first'
  | 'time is a parameter'
  | 'chance is a parameter'
  | 'time zone is a parameter'
  | 'no session settings'
  | 'no merge'
  | 'no subquery on conflict'
  | 'named columns'
  | 'lock alone'
  | 'notify alone'
  | 'global alone'
  | 'known table'
  | 'queries only'
  | 'no triggers'

export type Violation<Rule = StatementRule> = { rule: Rule; says: string }

/** What the rules need to know of the schema. */
export type KnownTables = {
  /** Tables whose rows belong to apps, `apps` itself among them. */
  ofApps: ReadonlySet<string>
  /** Small tables that are copied to every node when the others are distributed. */
  global: ReadonlySet<string>
  /** The tables that a table's foreign keys point at. */
  parents: ReadonlyMap<string, readonly string[]>
}

type Source = { table: string; alias: string }
/** Where a table is read: in which part of a `with` list, and whether only to say which rows are to be changed. */
type Read = { table: string; part: number; isProbe: boolean; isClaim: boolean }
type Write = { table: string; part: number; isInsert: boolean }
type Place = { ctes: ReadonlySet<string>; part: number; isProbe: boolean; claimedFrom: string | undefined }

const QUERIES = new Set(['SelectStmt', 'InsertStmt', 'UpdateStmt', 'DeleteStmt'])
const CLOCKS =
  /^(now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|current_(date|time|timestamp)|localtime(stamp)?)$/
const CHANCE =
  /^(random|random_normal|gen_random_uuid|gen_random_bytes|uuidv[47]|uuid_generate_.*|setseed|nextval|currval)$/
const MOMENTS = /^(now|today|tomorrow|yesterday)$/i
/** Settings that bound how long something may take, and change no result. */
const HARMLESS = new Set(['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout'])

/** The last part of a `with` list is the statement's own. */
const OWN_PART = Number.MAX_SAFE_INTEGER

/** Our tables that a statement reads or writes. */
export const tablesOf = (statement: string, known: KnownTables): string[] =>
  parse(statement).flatMap(({ kind, tree }) => (QUERIES.has(kind) ? new Examination(known).tables(kind, tree) : []))

export function checkStatement(statement: string, known: KnownTables): Violation[] {
  return parse(statement).flatMap(({ kind, tree }) => {
    if (kind === 'TransactionStmt') return []
    if (kind === 'MergeStmt') return [{ rule: 'no merge', says: 'MERGE does not run on distributed tables' }]
    if (kind === 'CreateTrigStmt' || kind === 'RuleStmt')
      return [{ rule: 'no triggers', says: 'distributed tables have no triggers and no rules' }]
    if (kind === 'VariableSetStmt')
      return HARMLESS.has(String(tree.name))
        ? []
        : [{ rule: 'no session settings', says: `"set ${tree.name}" does not reach the other nodes` }]
    if (!QUERIES.has(kind)) return [{ rule: 'queries only', says: `a ${kind} belongs into a migration` }]
    return new Examination(known).run(kind, tree)
  })
}

class Examination {
  readonly #known: KnownTables
  readonly #violations: Violation[] = []
  readonly #reads: Read[] = []
  readonly #writes: Write[] = []

  constructor(known: KnownTables) {
    this.#known = known
  }

  run(kind: string, tree: Tree): Violation[] {
    this.#query(kind, tree, { ctes: new Set(), part: OWN_PART, isProbe: false, claimedFrom: undefined })
    this.#checkOrder()
    this.#checkTables(kind, tree)
    this.#checkWords(tree)
    return this.#violations
  }

  tables(kind: string, tree: Tree): string[] {
    this.run(kind, tree)
    return [...new Set([...this.#reads, ...this.#writes].map(({ table }) => table))]
  }

  #add(rule: StatementRule, says: string) {
    if (!this.#violations.some((it) => it.rule === rule && it.says === says)) this.#violations.push({ rule, says })
  }

  /** One level: its own tables need their own binding. What is nested in it is a level of its own. */
  #query(kind: string, tree: Tree, outer: Place): void {
    const place = this.#withList(tree, outer)
    const { withClause, larg, rarg, selectStmt, relation, ...own } = tree
    if (larg && rarg) {
      this.#query('SelectStmt', larg as Tree, place)
      this.#query('SelectStmt', rarg as Tree, place)
    }
    if (selectStmt) this.#nested(selectStmt as Tree, place)

    const { sources, recordsets, conditions } = this.#from(kind, own, place)
    const target = relation && kind !== 'SelectStmt' ? sourceOf(relation as Tree) : undefined
    if (target && this.#checkKnown(target.table))
      this.#writes.push({ table: target.table, part: place.part, isInsert: kind === 'InsertStmt' })
    for (const { table } of sources)
      this.#reads.push({ table, part: place.part, isProbe: place.isProbe, isClaim: place.claimedFrom === table })

    const bound = kind === 'InsertStmt' ? sources : target ? [target, ...sources] : sources
    this.#checkBindings(bound, [...conditions, ...conjuncts(tree.whereClause)])
    if (kind === 'InsertStmt' && target) this.#checkInsert(target, tree)
    if (kind === 'UpdateStmt') this.#checkAppIdStays(tree.targetList)
    this.#checkStars(own, recordsets)

    const claimedFrom = kind === 'UpdateStmt' || kind === 'DeleteStmt' ? target?.table : undefined
    visitNodes(own, (inner, node) => {
      if (inner === 'SelectStmt')
        this.#query(inner, node, { ...place, claimedFrom: isClaim(node) ? claimedFrom : undefined })
      return !QUERIES.has(inner)
    })
  }

  #nested(node: Tree, place: Place) {
    const { kind, tree } = unwrap(node)
    this.#query(kind, tree, place)
  }

  #withList(tree: Tree, outer: Place): Place {
    const withClause = tree.withClause as Tree | undefined
    const ctes = new Set(outer.ctes)
    list(withClause?.ctes).forEach((node, i) => {
      const cte = as('CommonTableExpr', node) as Tree
      if (withClause?.recursive) ctes.add(String(cte.ctename))
      const isProbe = cte.ctematerialized === 'CTEMaterializeAlways' && as('SelectStmt', cte.ctequery) !== undefined
      const part = outer.part === OWN_PART ? i : outer.part
      this.#nested(cte.ctequery as Tree, { ...outer, ctes: new Set(ctes), part, isProbe: isProbe || outer.isProbe })
      ctes.add(String(cte.ctename))
    })
    return { ...outer, ctes }
  }

  #from(kind: string, own: Tree, place: Place) {
    const sources: Source[] = []
    const recordsets = new Set<string>()
    const conditions: Tree[] = []
    const collect = (node: Tree) => {
      const { kind, tree } = unwrap(node)
      const alias = (tree.alias as Tree | undefined)?.aliasname
      if (kind === 'JoinExpr') {
        for (const side of [tree.larg, tree.rarg]) collect(side as Tree)
        conditions.push(...conjuncts(tree.quals))
      } else if (kind === 'RangeVar') {
        const source = sourceOf(tree)
        if (!tree.schemaname && place.ctes.has(source.table)) recordsets.add(source.alias)
        else if (this.#checkKnown(source.table)) sources.push(source)
      } else if (alias !== undefined) recordsets.add(String(alias))
    }
    for (const node of list(kind === 'DeleteStmt' ? own.usingClause : own.fromClause)) collect(node)
    return { sources, recordsets, conditions }
  }

  #checkKnown(table: string): boolean {
    const { ofApps, global } = this.#known
    if (ofApps.has(table) || global.has(table)) return true
    this.#add('known table', `"${table}" is none of our tables`)
    return false
  }

  #checkBindings(sources: Source[], conditions: Tree[]) {
    const ofApps = sources.filter(({ table }) => this.#known.ofApps.has(table))
    for (const { table, alias } of ofApps) {
      const column = table === 'apps' ? 'id' : 'app_id'
      const isBound = conditions.some((condition) => {
        const given = boundColumn(condition)
        if (given?.column !== column) return false
        return given.alias === alias || (given.alias === undefined && ofApps.length === 1)
      })
      const name = alias === table ? table : `${table} ${alias}`
      if (!isBound) this.#add('one app', `"${name}" is read or changed without ${alias}.${column} = a bound value`)
    }
  }

  #checkInsert({ table }: Source, tree: Tree) {
    const conflict = tree.onConflictClause as Tree | undefined
    this.#checkAppIdStays(conflict?.targetList)
    visitNodes(conflict, (kind) => {
      if (kind === 'SubLink') this.#add('no subquery on conflict', `"on conflict" of ${table} reads more than the row`)
      return true
    })
    if (!this.#known.ofApps.has(table)) return
    const rule = 'rows from apps'
    const place = list(tree.cols).findIndex((node) => as('ResTarget', node)?.name === 'app_id')
    const rows = as('SelectStmt', tree.selectStmt)
    if (table === 'apps') return this.#add(rule, 'a new app has no row to take its rows from')
    if (place < 0) return this.#add(rule, `the columns of ${table} are not listed, or app_id is not among them`)
    const apps = list(rows?.fromClause)
      .flatMap(rangeVars)
      .find((node) => node.relname === 'apps')
    const first = as('ResTarget', list(rows?.targetList)[place])?.val
    const isAppsId = apps && columnOf(first)?.column === 'id' && columnOf(first)?.alias === sourceOf(apps).alias
    if (!isAppsId) this.#add(rule, `rows of ${table} do not take their app_id from "apps a" where a.id is bound`)
  }

  #checkAppIdStays(targets: unknown) {
    for (const node of list(targets))
      if (as('ResTarget', node)?.name === 'app_id') this.#add('app_id stays', 'a row never changes its app')
  }

  #checkStars(own: Tree, recordsets: ReadonlySet<string>) {
    visitNodes(own, (kind, node) => {
      if (kind !== 'ColumnRef') return !QUERIES.has(kind)
      const fields = list(node.fields)
      const isStar = fields.some((field) => as('A_Star', field))
      const alias = fields.length > 1 ? text(fields[0]) : undefined
      if (isStar && !(alias !== undefined && recordsets.has(alias)))
        this.#add('named columns', `"${alias === undefined ? '' : `${alias}.`}*" changes with the table`)
      return true
    })
  }

  #checkOrder() {
    for (const read of this.#reads) {
      if (read.isClaim) continue
      const writes = this.#writes.filter(({ table }) => table === read.table)
      if (writes.some(({ part }) => !(read.isProbe && read.part < part)))
        this.#add('read before write', `"${read.table}" is read and written, and not read first in a materialized part`)
    }
    const inserts = this.#writes.filter(({ isInsert }) => isInsert)
    for (const { table, part } of inserts)
      for (const parent of this.#known.parents.get(table) ?? [])
        if (inserts.some((other) => other.table === parent && other.part > part))
          this.#add('parents first', `"${table}" is inserted before "${parent}", which its foreign key points at`)
  }

  #checkTables(kind: string, tree: Tree) {
    const touched = [...this.#reads, ...this.#writes].map(({ table }) => table)
    const globals = touched.filter((table) => this.#known.global.has(table))
    if (globals.length > 0 && touched.some((table) => this.#known.ofApps.has(table)))
      this.#add('global alone', `"${globals[0]}" is asked first, then the app's tables with what it said`)
    const isAlone = kind === 'SelectStmt' && !tree.fromClause && !tree.whereClause && list(tree.targetList).length === 1
    visitNodes(tree, (inner, node) => {
      if (inner !== 'FuncCall') return true
      const name = functionName(node)
      if (/advisory/.test(name) && !isAlone) this.#add('lock alone', `${name} runs on whichever node the table is on`)
      if (name === 'pg_notify' && touched.length > 0)
        this.#add('notify alone', 'pg_notify beside a table runs on its node, where nobody listens')
      return true
    })
  }

  #checkWords(tree: Tree) {
    visitNodes(tree, (kind, node) => {
      if (kind === 'SQLValueFunction') {
        const name = String(node.op).replace('SVFOP_', '').replace(/_N$/, '').toLowerCase()
        if (CLOCKS.test(name)) this.#add('time is a parameter', `${name} is another clock than ours`)
      } else if (kind === 'FuncCall') this.#checkFunction(functionName(node), list(node.args))
      else if (kind === 'TypeCast') this.#checkCast(node)
      return true
    })
  }

  #checkFunction(name: string, args: Tree[]) {
    if (CLOCKS.test(name) || (name === 'age' && args.length === 1))
      this.#add('time is a parameter', `${name}() is another clock than ours`)
    if (CHANCE.test(name)) this.#add('chance is a parameter', `${name}() cannot be repeated, and differs by node`)
    if (name === 'set_config' || name === 'current_setting')
      this.#add('no session settings', `${name}() does not reach the other nodes`)
    const isUnzoned =
      (name === 'date_trunc' && args.length === 2 && !isZoned(args[1])) ||
      (/^(extract|date_part)$/.test(name) && constantOf(args[0]) !== 'epoch' && !isZoned(args[1]))
    if (isUnzoned) this.#add('time zone is a parameter', `${name}() without a zone takes the session's`)
  }

  #checkCast({ arg, typeName }: Tree) {
    const type = names((typeName as Tree | undefined)?.names).at(-1) ?? ''
    if (/^(timestamptz?|date|timetz?)$/.test(type) && MOMENTS.test(constantOf(arg) ?? ''))
      this.#add('time is a parameter', `'${constantOf(arg)}'::${type} is another clock than ours`)
    if (type === 'date' && as('ColumnRef', arg))
      this.#add('time zone is a parameter', 'a cast to date takes the zone of the session')
  }
}

const sourceOf = (range: Tree): Source => {
  const name =
    range.schemaname && range.schemaname !== 'public' ? `${range.schemaname}.${range.relname}` : range.relname
  return { table: String(name), alias: String((range.alias as Tree | undefined)?.aliasname ?? range.relname) }
}

function rangeVars(node: Tree): Tree[] {
  const { kind, tree } = unwrap(node)
  if (kind === 'RangeVar') return [tree]
  return kind === 'JoinExpr' ? [tree.larg, tree.rarg].flatMap((side) => rangeVars(side as Tree)) : []
}

function conjuncts(node: unknown): Tree[] {
  if (!node) return []
  const all = as('BoolExpr', node)
  return all?.boolop === 'AND_EXPR' ? list(all.args).flatMap(conjuncts) : [node as Tree]
}

function columnOf(node: unknown): { alias: string | undefined; column: string } | undefined {
  const fields = names(as('ColumnRef', node)?.fields)
  const column = fields.at(-1)
  return column === undefined ? undefined : { alias: fields.at(-2), column }
}

/** The column of `column = $n`; the value may be cast, the column may not. */
function boundColumn(condition: Tree) {
  const equal = as('A_Expr', condition)
  if (equal?.kind !== 'AEXPR_OP' || names(equal.name).join() !== '=') return undefined
  const isBound = (side: unknown) =>
    as('ParamRef', side) !== undefined || as('ParamRef', as('TypeCast', side)?.arg) !== undefined
  if (isBound(equal.rexpr)) return columnOf(equal.lexpr)
  return isBound(equal.lexpr) ? columnOf(equal.rexpr) : undefined
}

/** `select ctid … for update`: which rows of its own table an update or delete takes. */
function isClaim(select: Tree): boolean {
  const columns = list(select.targetList).map((node) => columnOf(as('ResTarget', node)?.val)?.column)
  return (
    list(select.lockingClause).length > 0 &&
    columns.length > 0 &&
    columns.every((it) => it === 'ctid' || it === 'tableoid')
  )
}

const functionName = (call: Tree) => names(call.funcname).at(-1) ?? ''
const constantOf = (node: unknown) => (as('A_Const', node)?.sval as Tree | undefined)?.sval as string | undefined
const isZoned = (node: unknown) => functionName(as('FuncCall', node) ?? {}) === 'timezone'

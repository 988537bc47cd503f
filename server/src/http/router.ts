// Which route a path means. A tree of segments: what is spelled out goes before what is a parameter.

type Branch<Value> = {
  spelled: Map<string, Branch<Value>>
  parameter: Branch<Value> | undefined
  /** By method, with the names of the parameters on the way. */
  ends: Map<string, { value: Value; names: string[] }>
}

export type Found<Value> = { value: Value; params: Record<string, string> }

export type Router<Value> = {
  add(method: string, path: string, value: Value): void
  /** Parameters come decoded. Throws URIError for what cannot be decoded. */
  find(method: string, path: string): Found<Value> | undefined
}

const newBranch = <Value>(): Branch<Value> => ({ spelled: new Map(), parameter: undefined, ends: new Map() })

export function createRouter<Value>(): Router<Value> {
  const root = newBranch<Value>()

  function add(method: string, path: string, value: Value) {
    const names: string[] = []
    let branch = root
    for (const segment of path.split('/').slice(1)) {
      if (segment.startsWith(':')) {
        names.push(segment.slice(1))
        branch.parameter ??= newBranch()
        branch = branch.parameter
      } else {
        let next = branch.spelled.get(segment)
        if (!next) {
          next = newBranch()
          branch.spelled.set(segment, next)
        }
        branch = next
      }
    }
    branch.ends.set(method, { value, names })
  }

  return {
    add,
    find(method, path) {
      const given = path.split('/')
      // Decoded after splitting: an encoded slash belongs to its segment.
      if (path.includes('%')) for (let i = 1; i < given.length; i++) given[i] = decodeURIComponent(given[i] as string)
      const values: string[] = []
      const end = walk(root, method, given, 1, values)
      if (!end) return undefined
      const params: Record<string, string> = {}
      for (let i = 0; i < end.names.length; i++) params[end.names[i] as string] = values[i] as string
      return { value: end.value, params }
    },
  }
}

function walk<Value>(
  branch: Branch<Value>,
  method: string,
  given: string[],
  at: number,
  values: string[],
): { value: Value; names: string[] } | undefined {
  if (at === given.length) return branch.ends.get(method)
  const segment = given[at] as string
  const spelled = branch.spelled.get(segment)
  const end = spelled && walk(spelled, method, given, at + 1, values)
  if (end || !branch.parameter || segment === '') return end
  values.push(segment)
  const found = walk(branch.parameter, method, given, at + 1, values)
  if (!found) values.pop()
  return found
}

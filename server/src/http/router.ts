// Finds the route for a path. A tree of segments, in which literal segments take precedence over parameters.

type RouterNode<Value> = {
  spelled: Map<string, RouterNode<Value>>
  parameter: RouterNode<Value> | undefined
  /** By method, with the names of the parameters on the path. */
  ends: Map<string, { value: Value; names: string[] }>
}

export type RouteMatch<Value> = { value: Value; params: Record<string, string> }

export type Router<Value> = {
  add(method: string, path: string, value: Value): void
  /**
   * Removes a trailing slash and empty segments: existing clients send both. A path whose empty segment may be a
   * parameter that the caller left empty stays as it is and matches nothing: without the segment it could mean
   * something else, so that `/journeys//users` would be the journey `users`.
   */
  normalize(path: string): string
  /** Expects a normalized path. Parameters are decoded. Throws URIError for what cannot be decoded. */
  find(method: string, path: string): RouteMatch<Value> | undefined
}

const newBranch = <Value>(): RouterNode<Value> => ({ spelled: new Map(), parameter: undefined, ends: new Map() })

export function createRouter<Value>(): Router<Value> {
  const root = newBranch<Value>()
  let maxSegments = 0

  function add(method: string, path: string, value: Value) {
    const names: string[] = []
    let branch = root
    const segments = path.split('/').slice(1)
    // The root under a prefix has no trailing slash either.
    if (segments.length > 1 && segments.at(-1) === '') segments.pop()
    maxSegments = Math.max(maxSegments, segments.length)
    for (const segment of segments) {
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
    normalize(path) {
      if (path === '/' || !(path.endsWith('/') || path.includes('//'))) return path
      let end = path.length
      while (end > 1 && path[end - 1] === '/') end--
      const trimmed = path.slice(0, end)
      if (!trimmed.includes('//')) return trimmed
      const segments = trimmed.split('/').filter((segment) => segment !== '')
      // Longer than any route: it cannot match, so the search below is skipped.
      if (segments.length > maxSegments) return path
      return mayLackParameter(root, shortenRuns(path), 1, false) ? path : `/${segments.join('/')}`
    },
    find(method, path) {
      const given = splitPath(path)
      const values: string[] = []
      const end = walk(root, method, given, 1, values)
      if (!end) return undefined
      const params: Record<string, string> = {}
      for (let i = 0; i < end.names.length; i++) params[end.names[i] as string] = values[i] as string
      return { value: end.value, params }
    },
  }
}

/** Decoded after splitting: an encoded slash belongs to its segment. */
function splitPath(path: string): string[] {
  const segments = path.split('/')
  return path.includes('%') ? segments.map(decodeURIComponent) : segments
}

/** No route has more than two adjacent parameters, so more than two empty segments in a row mean the same as two. */
const shortenRuns = (path: string) => splitPath(path.replaceAll(/\/{3,}/g, '///'))

/**
 * Whether there is a route, of any method, that the path matches when an empty segment before its end is a parameter.
 */
function mayLackParameter<Value>(branch: RouterNode<Value>, given: string[], at: number, lacks: boolean): boolean {
  if (at === given.length) return lacks && branch.ends.size > 0
  const segment = given[at] as string
  const isEmpty = segment === ''
  const isAtEnd = isEmpty && given.slice(at).every((rest) => rest === '')
  if (isEmpty && mayLackParameter(branch, given, at + 1, lacks)) return true
  const spelled = branch.spelled.get(segment)
  if (spelled && mayLackParameter(spelled, given, at + 1, lacks)) return true
  return (
    branch.parameter !== undefined && mayLackParameter(branch.parameter, given, at + 1, lacks || (isEmpty && !isAtEnd))
  )
}

function walk<Value>(
  branch: RouterNode<Value>,
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

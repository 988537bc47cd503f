// What each caller must be told, whatever the code does. The words are those of the interface: who reaches an app, who may
// do what there, and that nobody learns of an app that is not theirs.

import type { Route } from '../../src/http/route.ts'

export type CallerKind =
  /** A key of this app that may do everything, in whatever way it is written. */
  | 'own'
  | 'own without the permission'
  | 'own from elsewhere'
  | 'sibling app'
  | 'foreign app'
  | 'own organization'
  | 'foreign organization'
  /** Revoked, cut short, unknown, or behind a word that is no scheme. */
  | 'bad key'
  | 'nobody'
  /** The two headers of an SDK, and no key. */
  | 'sdk'

/** Which app the request names: the own one, another of the same organization, one of another, or none that exists. */
export type Target = 'own' | 'sibling' | 'foreign' | 'missing'

export type Verdict = 'let in' | 'no key' | 'bad key' | 'forbidden' | 'no such app'

/** What an SDK may do without a key, as long as it names a user by nothing but the id that cannot be guessed. */
export const KEYLESS = [
  'POST /apps/:app_id/custom_events',
  'POST /apps/:app_id/integrations/custom_events',
  'POST /apps/:app_id/users',
  'GET /apps/:app_id/users/by/:alias_label/:alias_id',
  'PATCH /apps/:app_id/users/by/:alias_label/:alias_id',
  'GET /apps/:app_id/users/by/:alias_label/:alias_id/identity',
  'PATCH /apps/:app_id/users/by/:alias_label/:alias_id/identity',
  'DELETE /apps/:app_id/users/by/:alias_label/:alias_id/identity/:alias_label_to_delete',
  'POST /apps/:app_id/users/by/:alias_label/:alias_id/subscriptions',
  'GET /apps/:app_id/subscriptions/:subscription_id/user/identity',
  'PATCH /apps/:app_id/subscriptions/:subscription_id/user/identity',
  'PATCH /apps/:app_id/subscriptions/:subscription_id',
  'DELETE /apps/:app_id/subscriptions/:subscription_id',
  'PATCH /apps/:app_id/subscriptions/:subscription_id/owner',
]

export const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path}`

/** `isOpen`: the app named takes SDKs without a key and asks for no proof of identity. */
export function judge(
  route: Route,
  caller: CallerKind,
  target: Target,
  params: Record<string, string>,
  isOpen: boolean,
): Verdict {
  const { kind } = route.access
  if (kind === 'public') return 'let in'
  if (caller === 'nobody') return 'no key'
  if (caller === 'bad key') return 'bad key'
  if (caller === 'sdk') {
    const isNamedById = params.alias_label === undefined || params.alias_label === 'onesignal_id'
    return KEYLESS.includes(nameOf(route)) && isNamedById && isOpen && target !== 'missing' ? 'let in' : 'no key'
  }
  const isOrganization = caller === 'own organization' || caller === 'foreign organization'
  const isAboutAnApp = kind === 'app' || route.path.includes(':app_id')
  if (isAboutAnApp && !reaches(caller, target)) return 'no such app'
  if (kind !== 'app') return isOrganization ? 'let in' : 'forbidden'
  return isOrganization || caller === 'own without the permission' || caller === 'own from elsewhere'
    ? 'forbidden'
    : 'let in'
}

function reaches(caller: CallerKind, target: Target): boolean {
  if (caller === 'own organization') return target === 'own' || target === 'sibling'
  if (caller === 'foreign organization' || caller === 'foreign app') return target === 'foreign'
  if (caller === 'sibling app') return target === 'sibling'
  return target === 'own'
}

export type Told = { status: number; hasReference: boolean; isObject?: boolean }

/** How a verdict looks. `let in` is not here: what then happens is the operation's. */
export function told(verdict: Exclude<Verdict, 'let in'>, route: Route): Told {
  if (verdict === 'bad key') return { status: 401, hasReference: true, isObject: false }
  if (verdict === 'no key') {
    const isProviderMetrics = /provider_metrics/.test(route.path)
    return { status: 401, hasReference: false, isObject: !isProviderMetrics }
  }
  if (verdict === 'forbidden') return { status: 403, hasReference: false }
  if (nameOf(route) === 'POST /players') return told('bad key', route)
  if (/^\/apps\/:app_id\/segments\b/.test(route.path)) return { status: 400, hasReference: true }
  return { status: 404, hasReference: false }
}

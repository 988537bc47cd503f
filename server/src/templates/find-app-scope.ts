import { findApp, findOrganizationName } from '../apps/store.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { LiquidScopeParts } from './liquid-scope.ts'

/** The app and organization that a message is sent for, as Liquid sees them. */
export type AppScope = Pick<LiquidScopeParts, 'app' | 'organization'>

/** Undefined when the app does not exist. */
export async function findAppScope(db: Db, appId: AppId): Promise<AppScope | undefined> {
  const app = await findApp(db, appId)
  if (!app) return undefined
  const { organizationId } = app
  const name = (await findOrganizationName(db, organizationId)) ?? ''
  return { app: { id: appId, name: app.name }, organization: { id: organizationId, name } }
}

import { type AppOverview, findApp } from '../apps/store.ts'
import { appNotFound, invalid } from '../lib/errors.ts'
import { isUuid } from '../lib/ids.ts'
import type { SdkContext } from './context.ts'

/** The app that a public URL names, case-insensitively; undefined when there is no such app or the id is malformed. */
export const findPublicApp = async ({ db }: Pick<SdkContext, 'db'>, given: string): Promise<AppOverview | undefined> =>
  isUuid(given) ? findApp(db, given.toLowerCase()) : undefined

export async function requirePublicApp(ctx: Pick<SdkContext, 'db'>, given: string): Promise<AppOverview> {
  if (!isUuid(given)) throw invalid('app_id must be a UUID')
  const app = await findPublicApp(ctx, given)
  if (!app) throw appNotFound()
  return app
}

import { type AppOverview, findApp } from '../apps/store.ts'
import { appNotFound, invalid } from '../lib/errors.ts'
import { isUuid } from '../lib/ids.ts'
import type { SdkContext } from './context.ts'

/** The app that a public address names, in any case; undefined when it is none, or no id at all. */
export const findPublicApp = async ({ db }: Pick<SdkContext, 'db'>, given: string): Promise<AppOverview | undefined> =>
  isUuid(given) ? findApp(db, given.toLowerCase()) : undefined

export async function requirePublicApp(ctx: Pick<SdkContext, 'db'>, given: string): Promise<AppOverview> {
  if (!isUuid(given)) throw invalid('app_id must be a UUID')
  const app = await findPublicApp(ctx, given)
  if (!app) throw appNotFound()
  return app
}

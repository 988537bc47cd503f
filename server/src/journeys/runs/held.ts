import type { AppId } from '../../lib/ids.ts'
import { readSending } from '../../sending/read.ts'
import type { Db } from '../../storage/db.ts'
import { sendsTemplate } from '../node.ts'
import type { Compiled } from './compiled.ts'

/** Whether the app may not send at the moment. Asked only for journeys that do. */
export async function isHeld(db: Db, appId: AppId, { nodes }: Pick<Compiled, 'nodes'>, now: Date): Promise<boolean> {
  if (!nodes.some(({ kind }) => sendsTemplate(kind))) return false
  return (await readSending(db, appId, now)).hold?.reason === 'disabled'
}

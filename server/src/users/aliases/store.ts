import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import { sortedAliases } from '../row-order.ts'
import type { Alias } from './identity.ts'

export type OwnedAlias = Alias & { userId: UserId }

export const insertAliases = (db: Db, appId: AppId, list: OwnedAlias[]) =>
  db.query(sql`
  insert into aliases (app_id, label, value, user_id)
  select a.id, r.label, r.value, r.user_id
  from apps a cross join jsonb_to_recordset(${rows(
    sortedAliases(list).map(({ label, value, userId }) => ({ label, value, user_id: userId })),
  )}::jsonb) as r(label text, value text, user_id uuid)
  where a.id = ${appId}`)

export const deleteAliases = (db: Db, appId: AppId, list: Alias[]) =>
  db.query(sql`
  delete from aliases d
  using jsonb_to_recordset(${rows(list)}::jsonb) as r(label text, value text)
  where d.app_id = ${appId} and d.label = r.label and d.value = r.value`)

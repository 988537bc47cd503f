// A server with another SECRET_KEY than the one used to write the database would start, and then fail to send any
// message, webhook or email. Refusing at start makes that obvious.

import type { AppId } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { sealingKeyIds } from '../lib/secrets.ts'
import { type Config, ConfigError } from '../settings/config.ts'
import type { Db } from '../storage/db.ts'
import { sql } from '../storage/sql.ts'
import { findSecretKey, secretKeyFile } from './secret-key.ts'

type Unreadable = { appId: AppId; name: string; others: number }

/**
 * Sealed text names the key that it was sealed with, so nothing has to be decrypted. Returns the first unreadable
 * secret by app and name, and how many more there are.
 */
async function findUnreadable(db: Db, keyIds: readonly string[], now: Date): Promise<Unreadable | undefined> {
  const [found] = await db.query<Unreadable>(sql`
    select held.app_id, held.name, count(*) over () - 1 as others
    from (
      select a.id as app_id, c.key as name, c.value as sealed
      from apps a cross join lateral jsonb_each_text(a.credentials) c
      union all
      select d.app_id, 'DKIM key of ' || d.domain, k.value ->> 'sealed'
      from email_domains d cross join lateral jsonb_array_elements(d.dkim_keys) k
      union all
      select s.app_id, 'secret for events of ' || s.source, s.secret from email_event_sources s
      union all
      select w.app_id, 'webhook secret of administrator ' || w.id, w.webhook_secret from app_administrators w
      union all
      select w.app_id, 'secret of event webhook ' || w.id, w.secret from event_webhooks w
      union all
      select w.app_id, 'secret of event webhook ' || w.id, w.previous_secret from event_webhooks w
      where w.previous_until > ${now}::timestamptz
      union all
      select w.app_id, 'secret of journey webhook ' || w.id, w.secret from journey_webhooks w
      union all
      select w.app_id, 'secret of journey webhook ' || w.id, w.previous_secret from journey_webhooks w
      where w.previous_until > ${now}::timestamptz
    ) held
    where held.sealed is not null and split_part(held.sealed, '.', 2) <> all(${keyIds}::text[])
    order by held.app_id, held.name
    limit 1`)
  return found
}

type Settings = Pick<Config, 'secretKey' | 'dataDir' | 'allowUnreadableSecrets'>

/** Runs before a secret key is created: a new key would be useless for secrets that were sealed with another. */
export async function refuseUnreadableSecrets(db: Db, config: Settings, now: Date, log: Log): Promise<void> {
  const key = await findSecretKey(config)
  const found = await findUnreadable(db, key === undefined ? [] : sealingKeyIds(key), now)
  if (!found) return
  const { appId, name, others } = found
  const what = `the ${name} of app ${appId}${others > 0 ? ` and ${others} more` : ''}`
  if (config.allowUnreadableSecrets) {
    log.warn(`cannot read ${what}: written with another SECRET_KEY; set them again`)
    return
  }
  const where = config.secretKey === undefined ? secretKeyFile(config.dataDir) : 'SECRET_KEY'
  const verb = key === undefined ? 'is missing, and the database holds' : 'does not open'
  throw new ConfigError(
    `${where} ${verb} ${what}; give the key that it was written with (SECRET_KEY=new,old beside a new one), or, if that is lost, start with --allow-unreadable-secrets and set them again`,
  )
}

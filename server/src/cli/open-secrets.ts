// What commands seal with: the key of the server, or none. With another one they would write what no server opens, and none would
// start any more.

import { createLog } from '../lib/log.ts'
import { type SecretBox, secretBox } from '../lib/secrets.ts'
import { refuseUnreadableSecrets } from '../process/refuse-unreadable-secrets.ts'
import { ensureSecretKey } from '../process/secret-key.ts'
import type { Config } from '../settings/config.ts'
import type { Store } from './connect.ts'

export async function openSecrets({ db, clock }: Store, config: Config): Promise<SecretBox> {
  await refuseUnreadableSecrets(db, config, clock.now(), createLog('warn'))
  return secretBox(await ensureSecretKey(config))
}

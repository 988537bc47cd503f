// Opens the server's secret key for commands that seal. With another key they would write secrets that no server can
// read, and no server would start any more.

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

// How the secret that signs notices is stored.

import type { AppId } from '../lib/ids.ts'
import type { SecretBox } from '../lib/secrets.ts'
import { sealedFor } from '../lib/webhook-secrets.ts'
import type { AdministratorId } from './notice-store.ts'

export const sealedWebhookSecret = (secrets: SecretBox, appId: AppId, id: AdministratorId) =>
  sealedFor(secrets, 'app_administrators', appId, id)

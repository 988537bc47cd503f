// The secrets that sign webhooks: stored sealed, each for its row, and rotated without a gap.

import type { AppId } from './ids.ts'
import type { SecretBox } from './secrets.ts'

const DAY_MS = 86_400_000

export type SealedFor = { seal(plain: string): string; open(sealed: string): string }

/** A secret that is moved to another row does not open. */
export function sealedFor(secrets: SecretBox, table: string, appId: AppId, id: string): SealedFor {
  const context = `${table} ${appId} ${id}`
  return { seal: (plain) => secrets.seal(plain, context), open: (sealed) => secrets.open(sealed, context) }
}

/** Both secrets are sealed. */
export type WebhookSecrets = { secret: string; previousSecret: string | null; previousUntil: Date | null }

/** The previous secret signs as well for a day, so that receivers can switch. */
export const rotated = ({ secret }: Pick<WebhookSecrets, 'secret'>, sealed: string, now: Date): WebhookSecrets => ({
  secret: sealed,
  previousSecret: secret,
  previousUntil: new Date(now.getTime() + DAY_MS),
})

/** The secrets that sign at this time, the newest first. */
export function secretsAt({ open }: SealedFor, held: WebhookSecrets, now: Date): string[] {
  const { secret, previousSecret, previousUntil } = held
  return [open(secret), ...(previousSecret && previousUntil && previousUntil > now ? [open(previousSecret)] : [])]
}

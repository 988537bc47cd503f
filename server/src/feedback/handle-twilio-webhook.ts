// Requests from Twilio. Other callers learn nothing, not even whether the app exists, because nothing is looked up for
// an unsigned request.

import { readSmsProvider, twilioCallbackUrl } from '../apps/sms/configure.ts'
import { forbidden } from '../lib/errors.ts'
import { type AppId, isUuid } from '../lib/ids.ts'
import type { FeedbackContext } from './context.ts'
import { handleInboundSms } from './handle-inbound-sms.ts'

export async function handleTwilioWebhook(
  ctx: FeedbackContext,
  appId: AppId,
  body: string,
  signature: string | undefined,
): Promise<void> {
  const url = twilioCallbackUrl(ctx.publicUrl, appId)
  const provider = url && signature && isUuid(appId) ? await readSmsProvider(ctx, appId) : undefined
  const call =
    provider?.kind === 'twilio' && url
      ? ctx.readTwilioWebhook({ authToken: provider.secret, url, body, signature })
      : undefined
  if (!provider || !call) throw forbidden('The signature does not fit')
  if (call.kind === 'receipt') await ctx.handleReceipt(appId, call.receipt)
  if (call.kind === 'text') await handleInboundSms(ctx, appId, provider, call.text)
}

// Requests from Twilio. The body is not interpreted before its signature is verified, and every other caller gets the
// same answer, so that it does not reveal whether the app exists.

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

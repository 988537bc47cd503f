import Type from 'typebox'
import type { Route } from '../http/route.ts'
import { route } from '../http/route.ts'
import type { FeedbackContext } from './context.ts'
import { handleTwilioWebhook } from './handle-twilio-webhook.ts'

/** An empty response, which makes Twilio send no reply. */
const NOTHING = '<?xml version="1.0" encoding="UTF-8"?><Response></Response>'

export const twilioRoutes = (ctx: FeedbackContext): Route[] => [
  route({
    operation: 'takeTwilioCall',
    method: 'POST',
    path: '/feedback/twilio/:app_id',
    tag: 'Texts',
    summary: 'Twilio reports on texts, and hands texts on',
    description:
      'For Twilio alone: signed with the token of the account, over the address that PUBLIC_URL says. Receipts are counted; STOP and the like unsubscribe the number at once.',
    errors: 'messages',
    access: { kind: 'public' },
    limits: [],
    params: Type.Object({ app_id: Type.String() }),
    body: Type.String(),
    isForm: true,
    maxBodyBytes: 65_536,
    answers: { 200: Type.String() },
    produces: 'text/xml',
    async handle(call) {
      await handleTwilioWebhook(ctx, call.params.app_id, call.body, call.header('x-twilio-signature'))
      return { status: 200, body: NOTHING, headers: { 'content-type': 'text/xml; charset=utf-8' } }
    },
  }),
]

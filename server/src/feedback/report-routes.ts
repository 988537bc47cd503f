// What SDKs on devices report about a message. They bring no key, and a service worker cannot even prove its identity:
// the id of a message together with the id of a subscription is known only to the device that received it.

import type { Route } from '../http/route.ts'
import { route } from '../http/route.ts'
import type { FeedbackContext } from './context.ts'
import { NotedAnswer, OpenedBody, ReceivedBody, ReportPath } from './report-schema.ts'

/** A report consists of a few ids. */
const MAX_BYTES = 4_096

const common = {
  errors: 'messages' as const,
  tag: 'SDKs',
  access: { kind: 'public' as const },
  limits: [],
  params: ReportPath,
  maxBodyBytes: MAX_BYTES,
  maxKeys: 50,
  answers: { 200: NotedAnswer },
}

/** The answer is the same whether or not the message exists, so it reveals nothing to callers that guess. */
const NOTED = { status: 200, body: { success: true } }

export const reportRoutes = ({ recordFeedback: note }: Pick<FeedbackContext, 'recordFeedback'>): Route[] => [
  route({
    ...common,
    operation: 'reportReceived',
    method: 'PUT',
    path: '/notifications/:message_id/report_received',
    summary: 'A device received a message',
    description: 'Counted once for each subscription. Ids that belong to nothing are answered alike.',
    body: ReceivedBody,
    async handle({ params, body }) {
      await note(body.app_id.toLowerCase(), {
        kind: 'received',
        messageId: params.message_id,
        subscriptionId: body.player_id.toLowerCase(),
      })
      return NOTED
    },
  }),
  route({
    ...common,
    operation: 'reportOpened',
    method: 'PUT',
    path: '/notifications/:message_id',
    summary: 'Somebody opened a message',
    description: 'Counted once for each subscription. Ids that belong to nothing are answered alike.',
    body: OpenedBody,
    async handle({ params, body }) {
      if (body.opened === true)
        await note(body.app_id.toLowerCase(), {
          kind: 'clicked',
          messageId: params.message_id,
          subscriptionId: body.player_id.toLowerCase(),
        })
      return NOTED
    },
  }),
]

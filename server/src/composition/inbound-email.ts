// Connects feedback on email: the channel that receives it, and the domain that interprets it.

import { classifyBounce } from '../channels/email/classify-bounce.ts'
import { type InboundSmtpListener, listenForInboundEmail } from '../channels/inbound-email/listen.ts'
import { parseReport } from '../channels/inbound-email/report.ts'
import type { Outbound } from '../channels/outbound.ts'
import { createReferences } from '../email/reference.ts'
import type { FeedbackContext } from '../feedback/context.ts'
import type { EmailFeedbackParts } from '../feedback/email/context.ts'
import { handleInboundEmail, readMailbox } from '../feedback/email/handle-inbound-email.ts'
import type { Log } from '../lib/log.ts'
import { type Config, ConfigError } from '../settings/config.ts'
import type { Renderer } from '../templates/render/renderer.ts'

export const mailParts = (parts: {
  secretKey: string
  outbound: Pick<Outbound, 'request'>
  renderer: Renderer
}): EmailFeedbackParts => ({
  references: createReferences(parts.secretKey),
  classifyBounce,
  async fetchPage(url) {
    const answer = await parts.outbound.request({ url, method: 'GET' })
    return answer.kind === 'answer' && answer.status === 200 && answer.isWhole ? answer.body : undefined
  },
  renderer: parts.renderer,
})

export const openMailListener = (
  feedback: FeedbackContext,
  { mailListen: at, name }: { mailListen: NonNullable<Config['mailListen']>; name: string },
  log: Log,
): Promise<InboundSmtpListener> =>
  listenForInboundEmail({
    ...at,
    name,
    hasMailbox: (address) => readMailbox(feedback.emailFeedback.references, address) !== undefined,
    async take({ to, message }) {
      try {
        await handleInboundEmail(feedback, to, parseReport(message))
      } catch (error) {
        log.warn(
          { failure: (error as Error).name },
          'Could not process an incoming email report; its sender will retry',
        )
        throw error
      }
    },
  }).catch((error) => {
    throw new ConfigError(`MAIL_LISTEN: cannot listen on ${at.host}:${at.port} (${error.code})`)
  })

// The mail server of a box.

import type { SecureContext } from 'node:tls'
import { type BoxContext, delaySlowResponse } from '../box-context.ts'
import type { ServerCertificate } from '../certificate.ts'
import { type FaultName, isRefusal } from '../faults.ts'
import type { RefusalName } from '../service.ts'
import { listenSmtp, type MailServer, type SmtpFault } from './smtp.ts'

const REFUSALS: Record<RefusalName, string> = {
  unavailable: '450 4.2.1 mailbox busy, try again later',
  rate_limited: '450 4.7.1 too many messages, try again later',
  gone: '550 5.1.1 no such mailbox',
}

/** Faults that take effect in the SMTP conversation once the message has arrived. */
const FAULTS: Partial<Record<FaultName, SmtpFault>> = {
  reset_after_accept: 'cut',
  hang: 'hang',
  trickle: 'trickle',
  garbage: 'garbage',
}

export type EmailListenerSettings = BoxContext & {
  tls: ServerCertificate & { contextFor(name: string): SecureContext }
}

export function listenEmail({ deliveries, faults, pace, port, tls }: EmailListenerSettings): Promise<MailServer> {
  /** Faults that take effect once the message has arrived, by recipient. */
  const later = new Map<string, FaultName>()
  return listenSmtp({
    port,
    tls,
    meet(stage, to) {
      const fault = stage === 'rcpt' ? faults.next('email', to)?.name : undefined
      if (isRefusal(fault)) return { say: REFUSALS[fault] }
      if (fault) later.set(to, fault)
      return undefined
    },
    async take({ recipients, mail: { headers, subject, text: plain, html } }, isGone) {
      const met = recipients.flatMap((to) => later.get(to) ?? [])
      for (const to of recipients) later.delete(to)
      if (!(await pace.turn(isGone))) return false
      const text = plain ?? html
      for (const to of recipients)
        deliveries.add({ channel: 'email', to, message_id: messageIdIn(headers), text, subject, headers })
      if (met.includes('slow')) await delaySlowResponse()
      return met.map((fault) => FAULTS[fault]).find((it) => it !== undefined) ?? true
    },
  })
}

/** Our email has the message's id at the start of its Feedback-ID. */
function messageIdIn(headers: Record<string, string>): string | null {
  const [, id] = /^([\w-]+):.*:carillon$/.exec(headers['feedback-id'] ?? '') ?? []
  return headers['x-message-id'] ?? id ?? null
}

// Sends notices to administrators by email: over the app's own route, but not as one of its messages.

import type { ChannelOutcome } from '../channels/channel.ts'
import type { EmailContext } from '../email/context.ts'
import { findDefaultFrom, findSendingDomain } from '../email/domains/find-sending-domain.ts'
import type { SendNoticeEmail } from '../sending/send-notice.ts'
import type { MailChannels } from './email-channels.ts'

export const createSendMail =
  (email: EmailContext, mails: Pick<MailChannels, 'open'>): SendNoticeEmail =>
  async (appId, { to, id, subject, text }) => {
    const from = (await findDefaultFrom(email, appId)) ?? {
      name: 'Carillon',
      address: `carillon@${email.serverEmail.helo}`,
    }
    const host = from.address.slice(from.address.lastIndexOf('@') + 1)
    const { channel, isCaught } = await mails.open(appId)
    // Signed when the domain is one of the app's. Looking it up must not add it to the app.
    const domain = isCaught ? undefined : await findSendingDomain(email, appId, host)
    const [outcome] = await channel.send([
      {
        content: { from, subject, html: [], text: [text], headers: [['Auto-Submitted', ['auto-generated']]] },
        reference: '',
        referenceFor: () => '',
        to,
        messageIdHeader: `<notice.${id}@${host}>`,
        envelopeFrom: from.address,
        date: email.now(),
        dkim: domain?.dkim ?? [],
        inboxProvider: 'notices',
        source: { appId, lane: 'direct' },
      },
    ])
    return outcome as ChannelOutcome
  }

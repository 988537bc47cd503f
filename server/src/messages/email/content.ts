// The content of a message, rendered or the same for all, as the channel for mail takes it. The recipient's references are left open.

import type { EmailAttachment, EmailContent } from '../../channels/email/message.ts'
import type { EmailReferences, ReferencePurpose } from '../../email/reference.ts'
import type { AppId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import { PLACEHOLDER_MARK, splitAtPlaceholders } from '../../lib/placeholders.ts'
import { htmlToText } from '../../templates/render/html-to-text.ts'
import type { DueDelivery, SentMessage } from '../deliver/store.ts'
import type { EmailEnvelope } from '../engine/sender.ts'
import type { RenderedTexts } from '../push/content.ts'
import type { EmailMetadata } from './prepare.ts'
import { type EmailUrls, emailUrls, fillPlaceholders, hasUnsubscribePlaceholder, referencePlaceholder } from './urls.ts'
import { writeEmailHtml } from './write-html.ts'

type Said = Pick<SentMessage, 'id' | 'lane' | 'content'>
type Sender = { appId: AppId; references: Pick<EmailReferences, 'sign'> }

export function emailContent(
  { appId, references }: Sender,
  { from, domain, referenceHeaders }: Pick<EmailMetadata, 'from' | 'domain' | 'referenceHeaders'>,
  { id, lane, content }: Said,
  texts: RenderedTexts,
  files?: readonly EmailAttachment[],
): EmailContent {
  const urls = emailUrls(domain.trackingUrl)
  // Liquid can make what cannot be written; it must not be taken for the place of a reference.
  const said = (field: string) => ownProperty(texts, field)?.replaceAll(PLACEHOLDER_MARK, '')
  const body = said('email_body') ?? ''
  const html = writeEmailHtml(body, {
    urls,
    sign: content.disable_email_click_tracking ? undefined : (url) => references.sign(appId, url),
    hasPixel: !content.disable_email_open_tracking,
    preheader: said('email_preheader'),
  })
  const text = textPart(said('email_text') ?? htmlToText(body), hasUnsubscribePlaceholder(body), urls)
  const replyTo = said('email_reply_to_address')
  return {
    from,
    ...(replyTo && { replyTo }),
    subject: said('email_subject') ?? '',
    html: splitAtPlaceholders(html),
    text: splitAtPlaceholders(text),
    headers: [
      ['List-Unsubscribe', splitAtPlaceholders(unsubscribeHeader(urls, domain.returnPathHost))],
      ['List-Unsubscribe-Post', ['List-Unsubscribe=One-Click']],
      ['Feedback-ID', [`${id}:${appId}:${lane}:carillon`]],
      ['X-Message-Id', [id]],
      ...referenceHeaders,
    ],
    ...(files && { files }),
  }
}

/** Its links are those that were written. Who can unsubscribe in the HTML can do so here. */
function textPart(text: string, isUnsubscribed: boolean, urls: EmailUrls): string {
  const filled = fillPlaceholders(text, urls)
  if (!isUnsubscribed || filled.includes(urls.unsubscribe)) return filled
  return `${filled}\n\nUnsubscribe: ${urls.unsubscribe}`
}

/** By one request, or by a mail to where bounces go. */
const unsubscribeHeader = ({ unsubscribe }: EmailUrls, returnPathHost: string) =>
  returnPathHost === ''
    ? `<${unsubscribe}>`
    : `<${unsubscribe}>, <mailto:u-${referencePlaceholder('unsubscribe')}@${returnPathHost}>`

/** What is each recipient's own. */
export function envelopeOf(
  { expandAt }: Pick<DueDelivery, 'expandAt'>,
  { content: { email_bcc: bcc } }: Said,
  { domain, id, referenceFor, inboxProvider }: EmailMetadata,
  date: Date,
): EmailEnvelope {
  const reference = referenceFor('report')
  return {
    reference,
    referenceFor: (place) => referenceFor(place as ReferencePurpose),
    messageIdHeader: `<${id}.${monthOf(expandAt)}@${domain.domain}>`,
    envelopeFrom: `b-${reference}@${domain.returnPathHost}`,
    date,
    dkim: domain.dkim,
    inboxProvider,
    ...(bcc && bcc.length > 0 && { bcc }),
  }
}

/** `3001` for January 2030. */
const monthOf = (time: Date) => time.toISOString().slice(2, 7).replace('-', '')

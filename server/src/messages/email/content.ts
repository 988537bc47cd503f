// Composes emails: the content from rendered texts, with placeholders for the recipient's references, and the envelope.

import type { EmailAttachment, EmailContent } from '../../channels/email/message.ts'
import type { EmailReferences, ReferencePurpose } from '../../email/reference.ts'
import type { AppId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import { PLACEHOLDER_MARK, splitAtPlaceholders } from '../../lib/placeholders.ts'
import { htmlToText } from '../../templates/render/html-to-text.ts'
import type { DueDelivery, SentMessage } from '../deliver/store.ts'
import type { ComposeContext, ReadyDelivery, RenderedTexts } from '../engine/channel.ts'
import type { EmailEnvelope, OutgoingMessage } from '../outgoing-message.ts'
import type { EmailDetails, EmailMetadata } from './prepare.ts'
import { type EmailUrls, emailUrls, fillPlaceholders, hasUnsubscribePlaceholder, referencePlaceholder } from './urls.ts'
import { writeEmailHtml } from './write-html.ts'

type EmailMessage = Pick<SentMessage, 'id' | 'lane' | 'content'>
type ContentSigner = { appId: AppId; references: Pick<EmailReferences, 'sign'> }

export function composeEmail(
  references: Pick<EmailReferences, 'sign'>,
  { due, message, details: { metadata, files } }: ReadyDelivery<EmailDetails>,
  texts: RenderedTexts,
  { appId, now, share }: ComposeContext,
): OutgoingMessage {
  const content = share('', () => emailContent({ appId, references }, metadata, message, texts, files))
  const address = { platform: due.platform, token: due.token ?? '' }
  return { ...address, kind: 'email', content, ...envelopeOf(due, message, metadata, now) }
}

export function emailContent(
  { appId, references }: ContentSigner,
  { from, domain, referenceHeaders }: Pick<EmailMetadata, 'from' | 'domain' | 'referenceHeaders'>,
  { id, lane, content }: EmailMessage,
  texts: RenderedTexts,
  files?: readonly EmailAttachment[],
): EmailContent {
  const urls = emailUrls(domain.trackingUrl)
  // Liquid can output the character that marks placeholders, which nobody can type. It must not become a placeholder.
  const textOf = (field: string) => ownProperty(texts, field)?.replaceAll(PLACEHOLDER_MARK, '')
  const body = textOf('email_body') ?? ''
  const html = writeEmailHtml(body, {
    urls,
    sign: content.disable_email_click_tracking ? undefined : (url) => references.sign(appId, url),
    hasPixel: !content.disable_email_open_tracking,
    preheader: textOf('email_preheader'),
  })
  const text = textPart(textOf('email_text') ?? htmlToText(body), hasUnsubscribePlaceholder(body), urls)
  const replyTo = textOf('email_reply_to_address')
  return {
    from,
    ...(replyTo && { replyTo }),
    subject: textOf('email_subject') ?? '',
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

/** Links are not tracked in the text part. If the HTML has an unsubscribe link, the text has one too. */
function textPart(text: string, isUnsubscribed: boolean, urls: EmailUrls): string {
  const filled = fillPlaceholders(text, urls)
  if (!isUnsubscribed || filled.includes(urls.unsubscribe)) return filled
  return `${filled}\n\nUnsubscribe: ${urls.unsubscribe}`
}

/** Recipients can unsubscribe with one request, or with an email to the bounce address. */
const unsubscribeHeader = ({ unsubscribe }: EmailUrls, returnPathHost: string) =>
  returnPathHost === ''
    ? `<${unsubscribe}>`
    : `<${unsubscribe}>, <mailto:u-${referencePlaceholder('unsubscribe')}@${returnPathHost}>`

/** The fields that differ from one recipient to the next. */
export function envelopeOf(
  { expandAt }: Pick<DueDelivery, 'expandAt'>,
  { content: { email_bcc: bcc } }: EmailMessage,
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

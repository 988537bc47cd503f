// Shows an email in the browser: the same content for the same person, without open and click tracking.

import type { EmailReference, ReferencePurpose } from '../../email/reference.ts'
import { fillPieces, PLACEHOLDER_MARK, splitAtPlaceholders } from '../../lib/placeholders.ts'
import { type EmailDelivery, findEmailDelivery } from '../../messages/email/store.ts'
import { emailUrls, fillPlaceholders } from '../../messages/email/urls.ts'
import { type Message, NO_RUN } from '../../messages/message.ts'
import { messageScope } from '../../messages/scope.ts'
import { findMessage } from '../../messages/store.ts'
import { emailBodyOf } from '../../templates/content-sources.ts'
import { findAppScope } from '../../templates/find-app-scope.ts'
import { textInLanguage } from '../../templates/language.ts'
import { buildLiquidScope } from '../../templates/liquid-scope.ts'
import { hasLiquid } from '../../templates/render/source.ts'
import { loadReferencedUsers } from '../../users/load-store.ts'
import type { FeedbackContext } from '../context.ts'
import { type EmailPage, PRIVATE, tooOldPage } from './pages.ts'

/** The page is the app's HTML. It may load images and styles, but it cannot run scripts, submit forms or be framed. */
const POLICY =
  "default-src 'none'; img-src https: http: data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'; sandbox allow-popups allow-popups-to-escape-sandbox"

export async function viewEmail(ctx: FeedbackContext, reference: EmailReference): Promise<EmailPage> {
  const delivery = await findEmailDelivery(ctx.db, reference)
  const message = delivery && (await findMessage(ctx.db, reference.appId, delivery.messageId))
  const html = message && (await renderFor(ctx, reference, message, delivery))
  if (html === undefined) return tooOldPage()
  const urls = emailUrls(ctx.publicUrl?.replace(/\/+$/, '') ?? '')
  // The page contains the links of the email itself, so anybody who can see it can unsubscribe as its reader can.
  const body = fillPieces(
    splitAtPlaceholders(fillPlaceholders(html.replaceAll(PLACEHOLDER_MARK, ''), urls)),
    (purpose) => ctx.emailFeedback.references.write(reference, purpose as ReferencePurpose),
  )
  return { status: 200, body, headers: { ...PRIVATE, 'content-security-policy': POLICY } }
}

async function renderFor(
  { db, clock, emailFeedback: email, readRunData }: FeedbackContext,
  reference: EmailReference,
  message: Message,
  { subscriptionId, runId }: Pick<EmailDelivery, 'subscriptionId' | 'runId'>,
): Promise<string | undefined> {
  const { appId } = reference
  const body = emailBodyOf(message.content, message.emailHtml)
  if (body === undefined || (typeof body === 'string' && !hasLiquid(body))) return body
  const [user] = await loadReferencedUsers(db, appId, [{ subscriptionId }], { subscriptions: true, purchases: false })
  const sender = await findAppScope(db, appId)
  if (!user || !sender) return undefined
  const subscription = user.subscriptions.get(subscriptionId)
  const text = textInLanguage(body, subscription?.language ?? user.properties.language)
  if (text === undefined || !hasLiquid(text)) return text
  const context = buildLiquidScope({
    user,
    subscription,
    ...sender,
    ...messageScope(message),
    journey: (runId === NO_RUN ? undefined : (await readRunData?.(appId, [runId]))?.get(runId)) ?? null,
    unsubscribeToken: email.references.write(reference, 'unsubscribe'),
  })
  const [rendered] = await email.renderer.render(
    appId,
    [{ template: { email_body: { kind: 'html', text } }, context }],
    clock.now(),
  )
  return rendered?.ok ? rendered.texts.email_body : undefined
}

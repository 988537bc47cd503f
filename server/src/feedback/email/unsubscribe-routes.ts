// Unsubscribing: by one click in the mail program (RFC 8058), on a page, through the preferences, or by the app with a
// token. A GET request never unsubscribes anybody, because scanners open links before people do.

import Type from 'typebox'
import type { Answer, Route } from '../../http/route.ts'
import { route } from '../../http/route.ts'
import type { FeedbackContext } from '../context.ts'
import {
  askPage,
  badLinkPage,
  type Preferences,
  preferencesPage,
  stoppedPage,
  subscribedPage,
  tooOldPage,
  unknownPage,
  unsubscribedPage,
} from './pages.ts'
import { findPreferences, setSubscribed, unsubscribeWithToken } from './unsubscribe.ts'

/** Enough for a form, or for the multipart body of mail programs: both have few fields. */
const MAX_BYTES = 8_192

const common = {
  tag: 'Email',
  errors: 'messages' as const,
  access: { kind: 'public' as const },
  limits: [],
}
const shown = { ...common, method: 'GET' as const, produces: 'text/html' }
const posted = {
  ...common,
  method: 'POST' as const,
  produces: 'text/html',
  body: Type.Unsafe<Buffer | undefined>({ description: 'A form.' }),
  isRaw: true as const,
  mayOmitBody: true,
  maxBodyBytes: MAX_BYTES,
}
const params = Type.Object({ reference: Type.String({ description: 'Which email to whom, signed for this purpose.' }) })
const answers = { 200: Type.String() }

const readForm = (body: unknown) => new URLSearchParams(Buffer.isBuffer(body) ? body.toString('latin1') : '')

export function unsubscribeRoutes(ctx: FeedbackContext): Route[] {
  const { references } = ctx.emailFeedback
  /** Renders a page about the recipient of an email. */
  const about = async (
    purpose: 'unsubscribe' | 'preferences',
    text: string,
    look: (reference: NonNullable<ReturnType<typeof references.read>>) => Promise<Preferences | undefined>,
    show: (found: Preferences) => Answer,
  ): Promise<Answer> => {
    const reference = references.read(text, purpose)
    if (!reference) return unknownPage()
    const found = await look(reference)
    return found ? show(found) : tooOldPage()
  }

  return [
    route({
      ...shown,
      operation: 'showUnsubscribe',
      path: '/e/u/:reference',
      summary: 'The page to unsubscribe from email',
      description: 'Shows a button, and changes nothing. 410 when the email is not kept any more.',
      params,
      answers,
      handle: ({ params }) =>
        about(
          'unsubscribe',
          params.reference,
          (reference) => findPreferences(ctx, reference),
          (found) => (found.isSubscribed ? askPage(found) : unsubscribedPage(found)),
        ),
    }),
    route({
      ...posted,
      operation: 'unsubscribeEmail',
      path: '/e/u/:reference',
      summary: 'Unsubscribe from email',
      description:
        'With one click (`List-Unsubscribe=One-Click`, as a form or multipart), or by the button of the page; `undo=yes` takes it back. The same however often it is asked.',
      params,
      answers,
      handle: ({ params, body }) => {
        const isUndone = readForm(body).get('undo') === 'yes'
        return about(
          'unsubscribe',
          params.reference,
          (reference) => setSubscribed(ctx, reference, isUndone),
          (found) => {
            if (!isUndone) return unsubscribedPage(found)
            return found.isSubscribed ? subscribedPage(found) : stoppedPage(found)
          },
        )
      },
    }),
    route({
      ...shown,
      operation: 'showEmailPreferences',
      path: '/e/p/:reference',
      summary: 'The page of email preferences',
      params,
      answers,
      handle: ({ params }) =>
        about('preferences', params.reference, (reference) => findPreferences(ctx, reference), preferencesPage),
    }),
    route({
      ...posted,
      operation: 'setEmailPreferences',
      path: '/e/p/:reference',
      summary: 'Set email preferences',
      description: '`email=subscribed` or `email=unsubscribed`, as a form.',
      params,
      answers,
      handle: ({ params, body }) => {
        const choice = readForm(body).get('email')
        if (choice !== 'subscribed' && choice !== 'unsubscribed') return badLinkPage()
        return about(
          'preferences',
          params.reference,
          (reference) => setSubscribed(ctx, reference, choice === 'subscribed'),
          (found) => preferencesPage(found, choice === 'subscribed'),
        )
      },
    }),
    route({
      ...common,
      operation: 'unsubscribeEmailWithToken',
      method: 'POST',
      path: '/apps/:app_id/notifications/:message_id/unsubscribe',
      summary: 'Unsubscribe from email with a token',
      description: 'With `subscription.unsubscribe_token`, as it stood in that message. No key is needed.',
      params: Type.Object({ app_id: Type.String(), message_id: Type.String() }),
      query: Type.Object({ token: Type.String({ description: 'From the message.' }) }),
      answers: { 202: Type.Object({ success: Type.Boolean() }) },
      async handle({ params, query }) {
        await unsubscribeWithToken(ctx, params.app_id, params.message_id.toLowerCase(), query.token)
        return { status: 202, body: { success: true } }
      },
    }),
  ]
}

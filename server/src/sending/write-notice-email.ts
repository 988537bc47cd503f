// Notices as plain-text email for people.

import type { AppId } from '../lib/ids.ts'
import { ownProperty } from '../lib/own-property.ts'
import type { EmailNotice } from './notice-store.ts'

const NOTICE_TEXTS: Record<string, { subject: string; text: string }> = {
  'sending.disabled': {
    subject: 'Sending is disabled',
    text: 'The app has delivered more messages within 15 minutes than its application message limit allows. What is due waits; new messages are refused. It goes on by itself once less than half of the limit is used, or with POST /apps/{app_id}/sending/enable.',
  },
  'event_webhook.disabled': {
    subject: 'An event webhook is switched off',
    text: 'An event webhook of the app has not answered for days and no longer receives events. Switch it on again with PATCH /apps/{app_id}/event_webhooks/{id} when it works.',
  },
  'email.paused': {
    subject: 'Email is paused because of complaints',
    text: 'More than 0.3 % of those who got email of the app said that it is spam. Email of the app waits until somebody has looked into it. It goes on with POST /apps/{app_id}/email/resume.',
  },
  'email.domain_failing': {
    subject: 'A sending domain has lost its DNS records',
    text: 'The DKIM records of a sending domain of the app are not in DNS any more. Nothing is sent from the domain until they are back, and POST /apps/{app_id}/email/domains/{domain}/verify has seen them.',
  },
  'message.unknown': {
    subject: 'Nobody knows whether some deliveries arrived',
    text: 'A server or a connection broke off while a message of the app was being sent. Some of its deliveries may or may not have arrived; they are not sent again by themselves. List them with GET /apps/{app_id}/messages/{message_id}/unknowns, send them again with POST …/unknowns/resend at the risk that some arrive twice, or close them as failed with POST …/unknowns/close.',
  },
  'template.suspended': {
    subject: 'A template is suspended',
    text: 'Rendering a template of the app hit its time limit for five recipients in a row. Messages with this content fail with the reason template_suspended for a day. Edit the template so that it takes less time, or resume it with POST /templates/{template_id}/resume?app_id={app_id}. Other templates are not affected.',
  },
}

export function writeNoticeEmail(
  appId: AppId,
  { kind, at, detail, appName }: EmailNotice,
): { subject: string; text: string } {
  const { subject, text } = ownProperty(NOTICE_TEXTS, kind) ?? { subject: kind, text: kind }
  const lines = [
    text.replaceAll('{app_id}', appId),
    '',
    `App: ${appName} (${appId})`,
    `When: ${at.toISOString()}`,
    ...Object.entries(detail).map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(', ') : value}`),
    '',
    'You get this because you are an administrator of the app.',
  ]
  return { subject: `${subject}: ${appName}`, text: lines.join('\n') }
}

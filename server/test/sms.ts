// Makers for tests about texts.

import { createHmac } from 'node:crypto'
import type { TestApp } from './app.ts'

export const TWILIO = {
  kind: 'twilio',
  account_sid: 'AC00000000000000000000000000000001',
  auth_token: 'token-of-the-account',
  from: '+15550001111',
}
export const SMPP = {
  kind: 'smpp',
  host: 'smsc.example.com',
  system_id: 'shop',
  password: 'word',
  from: '+15550002222',
}

export const setSms = (app: TestApp, body: object, { id, organizationKey } = app.tenant) =>
  app.request(`/apps/${id}/sms_settings`, {
    method: 'PUT',
    headers: { authorization: `Key ${organizationKey}` },
    body,
  })

/** As Twilio signs a form that it sends to this address. */
export function twilioSignature(authToken: string, url: string, form: Record<string, string>): string {
  const fields = Object.keys(form)
    .sort()
    .map((name) => `${name}${form[name]}`)
  return createHmac('sha1', authToken)
    .update([url, ...fields].join(''))
    .digest('base64')
}

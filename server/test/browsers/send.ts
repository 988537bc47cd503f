// A message to one subscription, sent by the server as for any customer, and what the server knows of it.

import { expect } from 'vitest'
import type { TestApp } from '../app.ts'
import { until } from './until.ts'

export type Sender = { id: string; key: string }
export type Fields = { title?: string | undefined; body?: string; [field: string]: unknown }
type Count = 'successful' | 'failed' | 'received' | 'converted'

const as = ({ key }: Sender) => ({ headers: { authorization: `Key ${key}` } })

export async function sendTo(app: TestApp, sender: Sender, subscriptionId: string, { title, body, ...rest }: Fields) {
  const answer = await app.request('/notifications', {
    ...as(sender),
    body: {
      app_id: sender.id,
      include_subscription_ids: [subscriptionId],
      ...(title !== undefined && { headings: { en: title } }),
      contents: { en: body ?? 'They ring' },
      ...rest,
    },
  })
  expect(answer.status).toBe(200)
  return answer.body as { id: string; errors?: unknown }
}

/** Settles when the message counts one of it. */
export const counted = (app: TestApp, sender: Sender, id: string, name: Count) =>
  until(async () => {
    const { body } = await app.request(`/notifications/${id}?app_id=${sender.id}`, as(sender))
    return body[name] === 1 ? body : undefined
  })

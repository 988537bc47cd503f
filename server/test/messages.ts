// Makers for tests about messages.

import type { Answer, Request, TestApp } from './app.ts'
import { aName, anEmail, aPhone, aUser } from './users.ts'

type Fields = Record<string, unknown>
// biome-ignore lint/suspicious/noExplicitAny: a row is read as the JSON it holds; the assertions are its type
type Row = Record<string, any>

export const aToken = () => aName('token')

/** A user with one push subscription, subscribed. */
export const aPushUser = (app: TestApp, more: Fields = {}) =>
  aUser(app, { subscriptions: [{ type: 'AndroidPush', token: aToken(), ...more }] })
export const anEmailUser = (app: TestApp, more: Fields = {}) =>
  aUser(app, { subscriptions: [{ type: 'Email', token: anEmail(), ...more }] })
export const anSmsUser = (app: TestApp, more: Fields = {}) =>
  aUser(app, { subscriptions: [{ type: 'SMS', token: aPhone(), ...more }] })

/** A push that says something; to be given recipients. */
export const saying = (fields: Fields = {}) => ({ contents: { en: 'Hello' }, ...fields })
export const mailing = (fields: Fields = {}) => ({ email_subject: 'Hello', email_body: '<p>Hello</p>', ...fields })

export const messagesOf = (app: TestApp) => {
  const appId = app.tenant.id
  const send = (fields: Fields, request: Request = {}): Promise<Answer> =>
    app.request('/notifications', { body: { app_id: appId, ...fields }, ...request })
  return {
    send,
    /** One that is accepted; its id. */
    async sent(fields: Fields): Promise<string> {
      const answer = await send(fields)
      if (answer.status !== 200 || !answer.body.id)
        throw new Error(`not accepted: ${answer.status} ${JSON.stringify(answer.body)}`)
      return answer.body.id
    },
    view: (id: string): Promise<Answer> => app.request(`/notifications/${id}?app_id=${appId}`),
    list: (query = ''): Promise<Answer> => app.request(`/notifications?app_id=${appId}${query}`),
    cancel: (id: string): Promise<Answer> => app.request(`/notifications/${id}?app_id=${appId}`, { method: 'DELETE' }),
    async row(id: string): Promise<Row> {
      const [row] = await app.db.query<Row>({
        text: `select channel, kind, lane, state, name, template_id, audience, content, email_html, options, queued_at, send_after
          from messages where app_id = $1 and id = $2`,
        values: [appId, id],
      })
      return row as Row
    },
    jobs: () =>
      app.db.query<{ name: string; key: string; runAt: Date }>({
        text: `select name, key, run_at from jobs where app_id = $1 order by name, key`,
        values: [appId],
      }),
    async count(): Promise<number> {
      const [row] = await app.db.query<{ n: number }>({
        text: 'select count(*) as n from messages where app_id = $1',
        values: [appId],
      })
      return row?.n ?? 0
    },
  }
}

export const NOT_FOUND = { status: 404, body: { errors: ['Notification not found'] } }
export const NOBODY_SUBSCRIBED = { status: 200, body: { id: '', errors: ['All included players are not subscribed'] } }
export const refused = (...errors: unknown[]) => ({ status: 400, body: { errors } })

type Count = { state: string; count: number; platform?: string; reason?: string; part?: number }

/** What the engine has counted of a message. */
export async function counted(app: TestApp, id: string, counts: Count[]): Promise<void> {
  for (const { state, count, platform = 'AndroidPush', reason = '', part = 0 } of counts)
    await app.db.query({
      text: `insert into message_counts (app_id, message_id, platform, state, reason, part, count)
        values ($1, $2, $3, $4, $5, $6, $7)`,
      values: [app.tenant.id, id, platform, state, reason, part, count],
    })
}

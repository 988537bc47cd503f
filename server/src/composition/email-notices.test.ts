import { expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { virtualClock } from '../lib/clock.ts'
import { notifyAdministrators } from '../sending/notify-administrators.ts'
import { sql } from '../storage/sql.ts'

/** The worker of the server does it in its own time. */
async function until<Found>(look: () => Promise<Found | undefined>): Promise<Found> {
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function mailOf(server: TestApp, to: string) {
  const { body } = await server.app(`/email/mailbox?to=${encodeURIComponent(to)}`)
  return body.mails[0]?.id as string | undefined
}

test('a notice to an administrator’s address goes out as the app’s mail does, and is counted nowhere', async () => {
  const clock = virtualClock('2030-01-01T09:00:00Z')
  const server = await testApp({
    clock,
    role: 'all',
    providers: { email: { route: undefined, helo: 'bell.example', resolver: undefined } },
  })
  try {
    const headers = { authorization: `Key ${server.tenant.organizationKey}` }
    await server.app('/administrators', { body: { email: 'ops@example.com' }, headers })
    await server.db.transaction((db) =>
      notifyAdministrators(db, server.tenant.id, 'email.paused', { delivered: 10, complained: 4 }, clock.now()),
    )
    const id = await until(() => mailOf(server, 'ops@example.com'))
    const { body } = await server.app(`/email/mailbox/${id}`)
    expect(body).toMatchObject({
      from: 'carillon@bell.example',
      subject: 'Email is paused because of complaints: Test app',
      message_id: null,
      html: null,
      text: expect.stringContaining(`POST /apps/${server.tenant.id}/email/resume`),
    })
    expect(body.headers).toContainEqual({ name: 'Auto-Submitted', value: 'auto-generated' })
    expect((await server.app('/sending')).body.usage.used).toBe(0)
    expect((await server.app('/email/domains')).body.domains).toEqual([])

    // From the address that the app has, as soon as it has one.
    await server.app('/email/settings', { method: 'PUT', body: { from_address: 'shop@shop.example' }, headers })
    await server.db.query(sql`delete from caught_mail where app_id = ${server.tenant.id}`)
    await server.db.transaction((db) =>
      notifyAdministrators(db, server.tenant.id, 'email.domain_failing', { domain: 'shop.example' }, clock.now()),
    )
    const second = await until(() => mailOf(server, 'ops@example.com'))
    expect((await server.app(`/email/mailbox/${second}`)).body.from).toBe('shop@shop.example')
  } finally {
    await server.close()
  }
})

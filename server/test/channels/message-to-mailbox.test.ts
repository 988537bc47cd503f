// A message that is made over HTTP, all the way through the server to a mail that a person can read.

import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import PostalMime from 'postal-mime'
import { expect, onTestFinished, test } from 'vitest'
import { createReferences, type EmailReference, type ReferencePurpose } from '../../src/email/reference.ts'
import { testApp } from '../app.ts'
import { messagesOf } from '../messages.ts'
import { startMailSink } from '../sinks/mail.ts'

const SECRET = 'the secret of this test'

/** The worker of the server does it in its own time. */
async function until<Found>(look: () => Promise<Found | undefined>): Promise<Found> {
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('a message becomes a mail, caught where no relay is set, with links that lead back to its delivery', async () => {
  const server = await testApp({
    role: 'all',
    secretKey: SECRET,
    publicUrl: 'https://bell.example',
    providers: { email: { route: undefined, helo: 'bell.example', resolver: undefined } },
  })
  try {
    const { sent, view } = messagesOf(server)
    const id = await sent({
      email_to: ['ann@gmail.com'],
      email_subject: 'Glöckchen für {{ subscription.email }}',
      email_body:
        '<body><a href="https://shop.example/?a=1&amp;b=ü">läutet</a> <a href="[unsubscribe_url]">stop</a></body>',
      email_preheader: 'Hört',
      email_from_address: 'tower@news.example',
    })
    const summary = await until(async () => (await server.app('/email/mailbox')).body.mails[0])
    expect(summary).toMatchObject({
      from: 'tower@news.example',
      to: 'ann@gmail.com',
      subject: 'Glöckchen für ann@gmail.com',
      message_id: id,
    })
    const { body: mail } = await server.app(`/email/mailbox/${summary.id}`)
    const [, reference = ''] = /https:\/\/bell\.example\/e\/u\/([a-z2-7]{55})/.exec(mail.html) ?? []
    const references = createReferences(SECRET)
    const { body } = await server.app(`/messages/${id}/deliveries`)
    expect(references.read(reference, 'unsubscribe')).toMatchObject({
      appId: server.tenant.id,
      id: body.deliveries[0].provider_reference,
    })
    const named = references.read(reference, 'unsubscribe') as EmailReference
    const writtenFor = (purpose: ReferencePurpose) => references.write(named, purpose)
    const target = 'https://shop.example/?a=1&b=%C3%BC'
    const signature = references.sign(server.tenant.id, target)
    expect(mail.html).toContain(
      `<a href="https://bell.example/e/c/${writtenFor('click')}/${signature}?u=${encodeURIComponent(target)}">läutet</a>`,
    )
    expect(mail.html).toContain('>Hört</div>')
    expect(mail.text).toContain(`läutet (https://shop.example/?a=1&b=ü)`)
    const header = (name: string) =>
      mail.headers.find((it: { name: string }) => it.name.toLowerCase() === name.toLowerCase())?.value
    expect(header('List-Unsubscribe')).toContain(`<https://bell.example/e/u/${reference}>`)
    expect(header('List-Unsubscribe-Post')).toBe('List-Unsubscribe=One-Click')
    expect(header('Feedback-ID')).toBe(`${id}:${server.tenant.id}:direct:carillon`)
    const stats = await until(async () => {
      const { body } = await view(id)
      return body.completed_at ? body.platform_delivery_stats.email : undefined
    })
    expect(stats).toMatchObject({ successful: 1, delivered: 1, bounced: 0 })
    expect((await server.app('/email/domains')).body.domains).toEqual([
      expect.objectContaining({ domain: 'news.example', state: 'active' }),
    ])
  } finally {
    await server.close()
  }
})

test('a message with attachments becomes a mail that holds them, at a real server of mail and in the mailbox', async () => {
  const pdf = randomBytes(300_000)
  const files = createServer((request, response) =>
    response.writeHead(200, { 'content-type': 'application/pdf' }).end(request.url === '/small' ? 'small' : pdf),
  ).listen(0, '127.0.0.1')
  onTestFinished(() => void files.close())
  await once(files, 'listening')
  const url = `http://127.0.0.1:${(files.address() as AddressInfo).port}`
  const relay = await startMailSink()
  onTestFinished(() => relay.close())
  const way = { host: '127.0.0.1', port: relay.port, tls: 'none', connections: 2, isCatcher: true } as const
  const allowing = { allow: ['127.0.0.1'], allowHttp: 'inside' } as const
  for (const mail of [way, undefined]) {
    const server = await testApp({
      role: 'all',
      emailAttachmentsMb: 1,
      providers: { outbound: allowing, email: { route: mail, helo: 'bell.example', resolver: undefined } },
    })
    try {
      const { sent, view } = messagesOf(server)
      const id = await sent({
        email_to: ['ann@gmail.com', 'bob@gmail.com'],
        email_subject: 'Bells',
        email_body: '<p>Bells</p>',
        email_from_address: 'tower@news.example',
        email_attachments: [{ url: `${url}/large`, filename: 'Glöckchen.pdf' }, { url: `${url}/small` }],
      })
      await until(async () => ((await view(id)).body.completed_at ? true : undefined))
      const caught = await Promise.all(
        (await server.app('/email/mailbox')).body.mails.map(async (it: { id: string }) => {
          const { body } = await server.app(`/email/mailbox/${it.id}`)
          expect(body.html).toContain('<p>Bells</p>')
          return Buffer.from(body.raw)
        }),
      )
      const mails = mail ? relay.received.map(({ source }) => source) : caught
      expect(mails).toHaveLength(2)
      for (const source of mails) {
        const { attachments, html, text } = await PostalMime.parse(source)
        expect([html?.includes('<p>Bells</p>'), text?.trim()]).toEqual([true, 'Bells'])
        expect(attachments.map(({ filename, mimeType }) => [filename, mimeType])).toEqual([
          ['Glöckchen.pdf', 'application/pdf'],
          ['small', 'application/pdf'],
        ])
        const bytes = Buffer.from(attachments[0]?.content as ArrayBuffer)
        // The database is no place for large ones.
        if (mail) expect(bytes.equals(pdf)).toBe(true)
        else expect(bytes.toString()).toBe('Too large to be kept with caught mail.')
      }
    } finally {
      await server.close()
    }
  }
})

/** As providers take it from a mail. */
type Header = { name: string; value: string }
const referencesIn = (headers: readonly Header[]) => {
  const header = (name: string) => headers.find((it) => it.name.toLowerCase() === name.toLowerCase())?.value
  const [ses, postmark] = [header('X-Carillon-Ref'), header('X-PM-Metadata-carillon_ref')]
  const [variables, api] = [header('X-Mailgun-Variables'), header('X-SMTPAPI')]
  return {
    ses,
    postmark,
    mailgun: variables && JSON.parse(variables).carillon_ref,
    sendgrid: api && JSON.parse(api).unique_args.carillon_ref,
  }
}

test('mail carries its reference for those providers that may tell of it, who bring it back', async () => {
  const server = await testApp({
    role: 'all',
    providers: { email: { route: undefined, helo: 'bell.example', resolver: undefined } },
  })
  try {
    const { sent, view } = messagesOf(server)
    const mailTo = async (address: string) => {
      const id = await sent({ email_to: [address], email_subject: 'Bells', email_body: '<p>Bells</p>' })
      const { id: mailId } = await until(async () =>
        (await server.app('/email/mailbox')).body.mails.find((it: { to: string }) => it.to === address),
      )
      const { headers } = (await server.app(`/email/mailbox/${mailId}`)).body
      await until(async () => ((await view(id)).body.completed_at ? true : undefined))
      return { id, references: referencesIn(headers) }
    }
    const plain = await mailTo('ann@gmail.com')
    expect(plain.references).toEqual({})

    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
    const sources = {
      ses: { topic_arn: 'arn:aws:sns:eu-west-1:123456789012:mail' },
      mailgun: { signing_key: 'the-key-of-signatures' },
      sendgrid: { public_key: publicKey.export({ type: 'spki', format: 'der' }).toString('base64') },
      postmark: { path_secret: 'nobody-else-knows-this' },
    }
    const change = (body: object) => server.app('/email/event_sources', { method: 'PUT', body })
    expect((await change(sources)).status).toBe(200)
    const told = await mailTo('bob@gmail.com')
    const { postmark: reference } = told.references
    expect(reference).toMatch(/^[a-z2-7]{55}$/)
    expect(told.references).toEqual({ ses: reference, postmark: reference, mailgun: reference, sendgrid: reference })

    const event = {
      RecordType: 'Bounce',
      Type: 'HardBounce',
      Email: 'bob@gmail.com',
      MessageID: '883953f4-6105-42a2-a16a-77a8eac79483',
      BouncedAt: new Date().toISOString(),
      Metadata: { carillon_ref: reference },
    }
    const answer = await server.app('/email/events/postmark/nobody-else-knows-this', { body: event })
    expect(answer.status).toBe(200)
    const { body } = await server.app(`/messages/${told.id}/deliveries`)
    expect(body.deliveries).toEqual([expect.objectContaining({ bounced_at: expect.any(String) })])
    expect((await server.app('/email/suppressions')).body.suppressions).toEqual([
      expect.objectContaining({ address: 'bob@gmail.com', reason: 'hard_bounce' }),
    ])

    await change({ ses: null, mailgun: null, sendgrid: null })
    const { references } = await mailTo('cy@gmail.com')
    expect(references).toEqual({ postmark: expect.stringMatching(/^[a-z2-7]{55}$/) })
  } finally {
    await server.close()
  }
})

// A preview shows what is sent: the same Liquid for the same person gives the same text, whichever way the message takes.

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { virtualClock } from '../src/lib/clock.ts'
import type { OutgoingMessage } from '../src/messages/outgoing-message.ts'
import { type TestApp, testApp } from './app.ts'
import { closeRenderer, fakeSender } from './engine.ts'
import { anAppOf } from './entry.ts'
import { record } from './events.ts'
import { aJourney, update } from './journeys.ts'
import { mailsOf } from './mail.ts'
import { templatesOf } from './templates.ts'
import { aName, anEmail, aUser } from './users.ts'
import { aWorker } from './worker.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
let server: TestApp
beforeAll(async () => {
  server = await testApp({ clock })
})
afterAll(async () => {
  await server.close()
  await closeRenderer()
})

/** Everything that can be known before a message is sent. The id and name of the message and the unsubscribe token cannot. */
const PATHS = [
  'city user.tags.city user.external_id user.onesignal_id user.language subscription.email subscription.phone_number',
  'subscription.language subscription.external_id app.id app.name org.id org.name template.id template.name',
  'message.template_id message.custom_data.code journey.name journey.first_event.name journey.last_event.properties.item',
  'journey.event.bought.properties.item dynamic_content.south.title dynamic_content.north.price dynamic_content[city].title',
  'dynamic_content[user.language].title dynamic_content.nobody.title missing',
].flatMap((line) => line.split(' '))
const anExpression = fc.oneof(
  fc.constantFrom(...PATHS).map((path) => `{{ ${path} }}`),
  fc.constantFrom(...PATHS).map((path) => `{{ ${path} | upcase | default: "none" }}`),
  fc.constantFrom(...PATHS).map((path) => `{% if ${path} %}yes{% else %}no{% endif %}`),
  fc.constant('{{ user.subscriptions | map: "id" | join: " " }}'),
  fc.constant('{{ "now" | date: "%H:%M" }}'),
)
const aLiquid = fc.array(anExpression, { minLength: 4, maxLength: 12 }).map((parts) => parts.join(' / '))

const aWord = fc.string({ unit: fc.constantFrom(...'aé漢 ,"<&\'7'), minLength: 1, maxLength: 8 })
const aCase = fc.record({
  text: aLiquid,
  words: fc.tuple(aWord, aWord, aWord, aWord, aWord),
  city: fc.constantFrom('south', 'north', 'nowhere'),
  language: fc.constantFrom('en', 'de', 'zh-TW'),
  isCsv: fc.boolean(),
})

/** The same rows as JSON and as CSV. */
function dynamicContent([title, price]: string[], isCsv: boolean): string {
  const rows = { south: { title, price }, north: { title: price, price: title }, de: { title: 'Titel', price: '' } }
  if (!isCsv) return JSON.stringify(rows)
  const cell = (text = '') => `"${text.replaceAll('"', '""')}"`
  const lines = Object.entries(rows).map(([name, row]) => [name, cell(row.title), cell(row.price)].join(','))
  return [',title,price', ...lines].join('\r\n')
}

type Said = { push?: object; sms?: string | undefined; email?: object }

function saidIn(messages: readonly OutgoingMessage[]): Said {
  const said: Said = {}
  for (const outgoing of messages) {
    if (outgoing.kind === 'push') said.push = { title: outgoing.content.title, body: outgoing.content.body }
    if (outgoing.kind === 'sms') said.sms = outgoing.content.text
    if (outgoing.kind === 'email') {
      const [mail] = mailsOf({ calls: [{ provider: 'email', outgoing }] })
      const html = mail?.html.replace(/<img [^>]*>$/, '')
      said.email = { subject: mail?.content.subject, html, text: mail?.text }
    }
  }
  return said
}

test('what a preview shows is what push, SMS and email say, sent at once and by a journey', async () => {
  await fc.assert(
    fc.asyncProperty(aCase, async ({ text, words, city, language, isCsv }) => {
      const app = await anAppOf(server)
      const templates = templatesOf(app)
      const user = await aUser(app, {
        properties: { tags: { city }, language },
        subscriptions: [
          { type: 'iOSPush', token: aName('token') },
          { type: 'SMS', token: '+15558675309' },
          { type: 'Email', token: anEmail() },
        ],
      })
      const common = { name: `Template ${words[4]}`, dynamic_content: dynamicContent(words, isCsv) }
      const texts = { en: `en ${text}`, 'zh-Hant': `zh ${text}` }
      const contents = {
        push: { contents: texts, headings: { en: text } },
        sms: { isSMS: true, contents: texts },
        email: { isEmail: true, email_subject: texts, email_body: `<p>${text}</p>` },
      }
      const ids: Record<string, string> = {}
      for (const [channel, content] of Object.entries(contents)) {
        const { status, body } = await templates.create({ ...common, ...content })
        expect([status, body.errors]).toEqual([200, undefined])
        ids[channel] = body.id
      }
      const previewed = async (more: object): Promise<Said> => {
        const who = { alias_label: 'external_id', alias_id: user.externalId }
        const rendered: Record<string, Record<string, string>> = {}
        for (const [channel, id] of Object.entries(ids)) {
          const { status, body } = await templates.preview(id, { ...who, ...more })
          expect(status).toBe(200)
          rendered[channel] = body.rendered
        }
        const { push, sms, email } = rendered
        return {
          push: { title: push?.headings, body: push?.contents },
          sms: sms?.contents,
          email: { subject: email?.email_subject, html: email?.email_body, text: email?.email_text },
        }
      }
      const sender = fakeSender()
      const work = () => aWorker(app, clock, { sender }).runDue()
      const sent = () => saidIn(sender.calls.splice(0).map(({ outgoing }) => outgoing))

      const custom_data = { code: words[2] }
      for (const [target_channel, template_id] of Object.entries(ids)) {
        const include_aliases = { external_id: [user.externalId] }
        const body = { app_id: app.tenant.id, include_aliases, target_channel, template_id, custom_data }
        expect((await app.request('/notifications', { body })).body).toMatchObject({ recipients: 1 })
      }
      await work()
      expect(sent()).toEqual(await previewed({ custom_data }))

      const nodes = Object.entries(ids).map(([channel, template_id]) => ({ kind: `send_${channel}`, template_id }))
      const journey = await aJourney(app, {
        name: words[3],
        audience: { kind: 'event_trigger', name: 'bought' },
        nodes,
      })
      expect((await update(app, journey.id, { state: 'active' })).status).toBe(200)
      await work()
      const properties = { item: words[0] }
      await record(app, [{ name: 'bought', external_id: user.externalId, properties }])
      await work()
      const event = { name: 'bought', properties, timestamp: clock.now().toISOString() }
      const ofJourney = { name: words[3], first_event: event, last_event: event, event: { bought: event } }
      expect(sent()).toEqual(await previewed({ journey: ofJourney }))
    }),
    { numRuns: 8 },
  )
})

test.each([
  [
    '{{ data_feed.weather.now }}',
    'data_feed is not available: this server fetches no feeds. Send what they hold as custom_data',
  ],
  [
    '{{ dynamic_content.a.b }}',
    'dynamic_content is not available: only a template with a field dynamic_content has it',
  ],
])('a message or a journey that could not fill %s is refused', async (text, problem) => {
  const app = await anAppOf(server)
  const message = await app.request('/notifications', {
    body: { app_id: app.tenant.id, included_segments: ['Total Subscriptions'], contents: { en: text } },
  })
  expect(message).toMatchObject({ status: 400, body: { errors: [`contents.en: line 1, column 4: ${problem}`] } })
  const nodes = [{ kind: 'tag', assignments: { weather: text } }]
  const audience = { kind: 'event_trigger', name: 'bought' }
  const journey = await app.app('/journeys', { body: { name: 'Tags', audience, nodes } })
  expect([journey.status, JSON.stringify(journey.body)]).toEqual([400, expect.stringContaining(problem)])
})

test('what is only known when a message is sent is there too', async () => {
  const app = await anAppOf(server)
  const { externalId } = await aUser(app, { subscriptions: [{ type: 'iOSPush', token: aName('token') }] })
  const text = '{{ message.id }} {{ message.name }}'
  const { body } = await templatesOf(app).create({ name: 'Ids', contents: { en: text } })
  const sender = fakeSender()
  const include_aliases = { external_id: [externalId] }
  const { id } = (
    await app.request('/notifications', {
      body: { app_id: app.tenant.id, include_aliases, target_channel: 'push', template_id: body.id, name: 'Bells' },
    })
  ).body
  await aWorker(app, clock, { sender }).runDue()
  expect(saidIn(sender.calls.map(({ outgoing }) => outgoing)).push).toMatchObject({ body: `${id} Bells` })
})

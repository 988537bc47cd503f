// A template that takes nearly all the time that one may take, and one that takes more: in a message to everybody, in messages to
// a hundred, and in previews.

import type { Rig } from '../rig.ts'
import { type Attacker, repeat, sendPush, together, urlOf } from './attacker.ts'
import { prepareAudience } from './audience.ts'

const PREVIEWS = 5
const MAX_DIRECT = 100
/** A template is ended after 200 ms. */
const SLOW_MS = 80
const MAX_ROUNDS = 4_000_000

const loop = (rounds: number) =>
  `{% for i in (1..${Math.ceil(rounds / 1_000)}) %}{% for j in (1..1000) %}{% assign x = j | times: i %}{% endfor %}{% endfor %}Hello`

const preview = (rig: Rig, text: string, signal?: AbortSignal) =>
  rig.ask(
    urlOf(rig),
    'POST',
    '/templates/preview',
    { app_id: rig.keys.appId, contents: { en: text }, alias_label: 'external_id', alias_id: READER },
    signal,
  )

const READER = 'the reader of slow templates'
let slow = loop(MAX_ROUNDS)
const endless = loop(MAX_ROUNDS)

export const slowTemplates: Attacker = {
  name: 'slow templates',
  channels: [],
  async prepare(rig) {
    await prepareAudience(rig)
    await rig.ask(urlOf(rig), 'POST', `/apps/${rig.keys.appId}/users`, {
      identity: { external_id: READER },
      subscriptions: [],
    })
    for (let rounds = 1_000; rounds < MAX_ROUNDS; rounds *= 1.5) {
      const began = performance.now()
      const { status } = await preview(rig, loop(rounds))
      if (status !== 200) break
      slow = loop(rounds)
      if (performance.now() - began > SLOW_MS) break
    }
  },
  async start(rig) {
    const some = rig.recipients.slice(0, MAX_DIRECT)
    for (const text of [slow, endless])
      await rig.create(urlOf(rig), { included_segments: ['Subscribed Users'], contents: { en: text } })
    return together(
      repeat(2, () => sendPush(rig, some, slow)),
      repeat(PREVIEWS, (signal, client) => preview(rig, client === 0 ? endless : slow, signal)),
    )
  },
}

// Push messages that are never answered: through providers that all apps share, or through web push services of the attacker's own.

import { insertPeople, newAddresses } from '../channels.ts'
import type { Recipient, Rig } from '../rig.ts'
import { type Attacker, HANGING, sendOneByOne, sendPush, setFault, subscribe, untilFailing } from './attacker.ts'

type Hanging = { channel: 'apns' | 'fcm' | 'web_push'; to: Recipient[] }

/** Of the hundreds, so many are seen to hang when the attack has taken hold. */
const SEEN = 20
const ONE_BY_ONE = 100

async function hangAll(rig: Rig, all: readonly Hanging[]) {
  const began = Date.now()
  for (const { channel, to } of all) {
    await setFault(rig, channel, 'hang', to)
    await sendPush(rig, to.slice(ONE_BY_ONE))
    await sendOneByOne(to.slice(0, ONE_BY_ONE), (one) => sendPush(rig, one))
  }
  await untilFailing(
    rig,
    all.map(({ channel }) => channel),
    SEEN,
    began,
  )
  return { stop: async () => {} }
}

let onShared: Hanging[] = []

export const hangingProviders: Attacker = {
  name: 'hanging providers',
  channels: ['apns', 'fcm', 'web_push'],
  async prepare(rig) {
    const names = ['apns', 'fcm', 'web_push'] as const
    onShared = await Promise.all(
      names.map(async (channel) => ({ channel, to: await subscribe(rig, channel, HANGING) })),
    )
  },
  start: (rig) => hangAll(rig, onShared),
}

let onOwn: Recipient[] = []

export const hangingOrigins: Attacker = {
  name: 'hanging origins',
  channels: ['web_push'],
  async prepare(rig) {
    const browsers = await newAddresses(rig, 'web_push', HANGING)
    const elsewhere = browsers.map((browser, n) => {
      const endpoint = new URL(browser.token)
      endpoint.hostname = `push-${n}.hostile.invalid`
      return { ...browser, token: endpoint.href }
    })
    onOwn = await insertPeople(rig, rig.keys.appId, elsewhere)
  },
  start: (rig) => hangAll(rig, [{ channel: 'web_push', to: onOwn }]),
}

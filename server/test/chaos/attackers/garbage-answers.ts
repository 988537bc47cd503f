// Answers of ten megabytes that mean nothing, from providers that all apps share.

import type { Recipient } from '../rig.ts'
import { type Attacker, repeat, sendPush, setFault, subscribe, untilFailing } from './attacker.ts'

const CHANNELS = ['apns', 'fcm', 'web_push'] as const
/** Few: they keep the machine busy that sends them, which is the same one here. */
const AT_ONCE = 4
const SEEN = 4

let tokens: Recipient[][] = []

export const garbageAnswers: Attacker = {
  name: 'garbage answers',
  channels: CHANNELS,
  async prepare(rig) {
    tokens = await Promise.all(CHANNELS.map((name) => subscribe(rig, name, AT_ONCE)))
  },
  async start(rig) {
    const began = Date.now()
    for (const [n, channel] of CHANNELS.entries()) await setFault(rig, channel, 'garbage', tokens[n])
    const attack = repeat(CHANNELS.length, (_, n) => sendPush(rig, tokens[n] ?? []))
    await untilFailing(rig, CHANNELS, SEEN, began)
    return attack
  },
}

// Mails to a server that takes them and never says so, over the relay that all apps share: in bulk, and one by one.

import type { Recipient } from '../rig.ts'
import { type Attacker, HANGING, sendMail, sendOneByOne, setFault, subscribe, untilFailing } from './attacker.ts'

let hanging: Recipient[] = []
/** Connections of the relay: as many can be seen to hang. */
const SEEN = 3

export const hangingMail: Attacker = {
  name: 'hanging mail',
  channels: ['email'],
  async prepare(rig) {
    hanging = await subscribe(rig, 'email', HANGING)
  },
  async start(rig) {
    const began = Date.now()
    await setFault(rig, 'email', 'hang', hanging)
    const half = hanging.length / 2
    await sendMail(rig, hanging.slice(0, half))
    await sendOneByOne(hanging.slice(half), (to) => sendMail(rig, to))
    await untilFailing(rig, ['email'], SEEN, began)
    return { stop: async () => {} }
  },
}

// Certificates whose password takes two billion rounds to check, eight at once.

import { base64, hostileP12 } from '../../credentials.ts'
import { until } from '../../process/launch.ts'
import { askAs } from '../rig.ts'
import { type Attacker, repeat, urlOf } from './attacker.ts'

const CLIENTS = 8
const ENDED_MS = 120_000

export const craftedP12: Attacker = {
  name: 'crafted p12',
  channels: [],
  async prepare() {},
  async start(rig) {
    const body = { apns_p12: base64(hostileP12()), apns_p12_password: 'x' }
    const upload = (file: object, signal?: AbortSignal) =>
      askAs(rig.keys.organizationKey, urlOf(rig), 'PUT', `/apps/${rig.keys.appId}`, file, signal)
    const attack = repeat(CLIENTS, (signal) => upload(body, signal))
    return {
      async stop() {
        await attack.stop()
        // Files whose sender has gone may still be waiting for their turn; what comes after them is answered once they are through.
        await until(async () => (await upload({ apns_p12: base64('no file') })).status === 400, ENDED_MS)
      },
    }
  },
}

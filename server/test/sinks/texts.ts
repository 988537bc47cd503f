import type { PDU } from 'smpp'
import { listenSmpp, type MessageCentre, type SmppVerdict } from '../../src/sink/sms/smpp.ts'
import { TWILIO_HOST, type TwilioReceived, twilioService } from '../../src/sink/sms/twilio.ts'
import { createScripts, type Scripted, type ScriptedProvider, startProvider } from './scripted.ts'

export type TwilioSink = ScriptedProvider & { texts: TwilioReceived[] }

export async function startTwilioSink(account: {
  accountSid: string
  password: string
  user?: string
}): Promise<TwilioSink> {
  const texts: TwilioReceived[] = []
  const service = twilioService({ account, onReceived: (it) => texts.push(it) })
  return { ...(await startProvider({ hosts: [TWILIO_HOST] }, () => service)), texts }
}

export type SmppSink = Scripted<SmppVerdict> & MessageCentre & { submitted: PDU[]; binds: PDU[]; enquiries(): number }
export type SmppSinkSettings = {
  systemId: string
  password: string
  /** The words of `stat:` in reports, by number. */
  states?: Readonly<Record<string, string>>
  tls?: { key: string; cert: string }
}

export async function startSmppSink({ systemId, password, states, tls }: SmppSinkSettings): Promise<SmppSink> {
  const submitted: PDU[] = []
  const binds: PDU[] = []
  const { taken, script, next, noteTaken } = createScripts<SmppVerdict>()
  let enquiries = 0
  const centre = await listenSmpp({
    tls,
    signIn(bind) {
      binds.push(bind)
      return bind.system_id !== systemId ? 0x0f : bind.password !== password ? 0x0e : 0
    },
    take(pdu) {
      submitted.push(pdu)
      const to = `+${pdu.destination_addr}`
      const verdict = next(to) ?? 0
      if (verdict === 0 || typeof verdict === 'string') noteTaken(to)
      return verdict
    },
    stateOf: (to) => states?.[to],
    onEnquiry: () => enquiries++,
  })
  return {
    ...centre,
    script,
    taken,
    requests: () => submitted.length,
    submitted,
    binds,
    enquiries: () => enquiries,
  }
}

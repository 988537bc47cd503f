import type { ProviderRoute } from '../../src/channels/channel.ts'
import { certificateFor } from '../../src/sink/certificate.ts'
import {
  listenSmtp,
  type MailServer,
  type ReceivedMessage,
  type SmtpFault,
  type SmtpSettings,
  type SmtpStage,
} from '../../src/sink/email/smtp.ts'
import { createScripts, type Scripted } from './scripted.ts'

/** At one stage; those before a recipient is named are for whoever comes next. */
export type MailTrouble = { at: SmtpStage; fault: SmtpFault }

export type MailSink = Scripted<MailTrouble> &
  MailServer & {
    route: ProviderRoute
    received: ReceivedMessage[]
    /** How often each stage was reached. */
    met: Map<SmtpStage, number>
  }

export type MailSinkSettings = Pick<SmtpSettings, 'auth' | 'without'> & {
  /** What its name in the certificate is; without it there is no TLS. */
  name?: string
  isImplicit?: boolean
}

export const ANYBODY = ''

export async function startMailSink({ name, isImplicit, auth, without }: MailSinkSettings = {}): Promise<MailSink> {
  const { taken, script, next } = createScripts<MailTrouble>()
  const scripted = new Map<string, MailTrouble>()
  const received: ReceivedMessage[] = []
  const met = new Map<SmtpStage, number>()
  const certificate = name === undefined ? undefined : certificateFor(name)
  const server = await listenSmtp({
    auth,
    without,
    ...(certificate && { tls: { ...certificate, ...(isImplicit && { isImplicit }) } }),
    meet(stage, who) {
      met.set(stage, (met.get(stage) ?? 0) + 1)
      const key = ['connect', 'hello', 'starttls', 'auth', 'mail', 'reset'].includes(stage) ? ANYBODY : who
      const trouble = scripted.get(key) ?? next(key)
      if (!trouble) return undefined
      if (trouble.at === stage) scripted.delete(key)
      else scripted.set(key, trouble)
      return trouble.at === stage ? trouble.fault : undefined
    },
    async take(it) {
      received.push(it)
      for (const to of it.recipients) taken.set(to, (taken.get(to) ?? 0) + 1)
      return true
    },
  })
  return {
    ...server,
    route: { ...(certificate && { ca: certificate.cert }) },
    script,
    requests: () => met.get('rcpt') ?? 0,
    taken,
    received,
    met,
  }
}

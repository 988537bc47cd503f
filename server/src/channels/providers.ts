import type { ProviderRoute } from './channel.ts'
import type { OutboundSettings } from './outbound.ts'

/** The operator's settings for reaching providers, shared by all channels of a server. */
export type ProviderSettings = {
  /** For the push providers, and for SMTP. */
  route: ProviderRoute
  /** For webhooks, and for SMS providers. */
  outbound: Pick<OutboundSettings, 'route' | 'allow' | 'allowHttp'>
  /** The base URL of Twilio or of a compatible service, for apps that set none of their own. */
  twilioUrl: string
  /** The contact that push services of browsers see: a mailto: or https: address. */
  vapidSubject: string
  email: ServerEmailSettings
}

export type ServerEmailSettings = {
  /**
   * The default email route of apps that have no settings of their own. If undefined, email goes to the development
   * mailbox.
   */
  route: ServerRelay | 'direct' | undefined
  /** The name we use in EHLO, and the domain of the apps' return paths. */
  helo: string
  /** The DNS server to query, as 127.0.0.1:5353. Defaults to the system's. */
  resolver: string | undefined
}

export type ServerRelay = {
  host: string
  port: number
  tls: 'starttls' | 'implicit' | 'opportunistic' | 'none'
  auth?: { user: string; password: string } | undefined
  connections: number
  perSecond?: number | undefined
  /** The relay only shows email and forwards nothing, so any domain may be the sender's. */
  isCatcher: boolean
}

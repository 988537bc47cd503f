import type { ProviderRoute } from './channel.ts'
import type { OutboundSettings } from './outbound.ts'

/** What the operator says about the way to providers: one for all channels of a server. */
export type ProviderSettings = {
  /** For the push platforms, and for SMTP. */
  route: ProviderRoute
  /** For webhooks, and for what sends texts. */
  outbound: Pick<OutboundSettings, 'route' | 'allow' | 'allowHttp'>
  /** Where Twilio is, or what speaks as it does, for apps that name no other address. */
  twilioUrl: string
  /** Who sends, for push services of browsers: a mailto: or https: address. */
  vapidSubject: string
  email: ServerEmailSettings
}

export type ServerEmailSettings = {
  /** How mail of apps goes out that say nothing of their own; undefined: it is caught. */
  route: ServerRelay | 'direct' | undefined
  /** The name that we greet with, and that return paths of apps lead to. */
  helo: string
  /** The DNS server to ask, as 127.0.0.1:5353; the system's unless told. */
  resolver: string | undefined
}

export type ServerRelay = {
  host: string
  port: number
  tls: 'starttls' | 'implicit' | 'opportunistic' | 'none'
  auth?: { user: string; password: string } | undefined
  connections: number
  perSecond?: number | undefined
  /** It shows mail and sends nothing on, so that any domain may be the sender's. */
  isCatcher: boolean
}

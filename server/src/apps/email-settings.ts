// How an app's mail goes out, as it is kept: in the words of the interface, without the password. What it means is for the
// email domain.

export const relayTls = ['starttls', 'implicit', 'opportunistic', 'none'] as const
export type RelayTls = (typeof relayTls)[number]

export type EmailRelaySettings = {
  host: string
  port: number
  tls: RelayTls
  username: string | null
  /** Connections at once, of each worker. */
  pool: number
  /** Mails a second, of each worker; null is as fast as the relay takes them. */
  per_second: number | null
}

export type EmailSettings = {
  /** Null: as the server does it. */
  mode: 'relay' | 'direct' | null
  relay: EmailRelaySettings | null
  /** Who sends where a message does not say it. */
  from_address: string | null
  from_name: string | null
}

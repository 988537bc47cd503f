// How an app's email is sent, as it is stored: with the names of the API, and without the password. The email domain
// interprets it.

export const relayTls = ['starttls', 'implicit', 'opportunistic', 'none'] as const
export type RelayTls = (typeof relayTls)[number]

export type EmailRelaySettings = {
  host: string
  port: number
  tls: RelayTls
  username: string | null
  /** Concurrent connections of each worker. */
  pool: number
  /** Emails per second of each worker; null means as fast as the relay accepts them. */
  per_second: number | null
}

export type EmailSettings = {
  /** Null means as configured for the server. */
  mode: 'relay' | 'direct' | null
  relay: EmailRelaySettings | null
  /** The sender of messages that name none. */
  from_address: string | null
  from_name: string | null
}

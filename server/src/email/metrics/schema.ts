// The wire shapes of email metrics.

import Type, { type Static } from 'typebox'
import { inboxProviders } from '../inbox-providers/providers.ts'

export const AppPath = Type.Object({ app_id: Type.String() })

const time = (description: string) => Type.String({ format: 'date-time', description })

export const ProviderMetricsQuery = Type.Object({
  domain: Type.String({ minLength: 1, description: 'A sending domain of the app, in any case.' }),
  start: time('Before `end`, and no more than 365 days in the past. What happened at this very moment counts.'),
  end: time('What happened at this very moment does not count. May lie in the future.'),
})
export type ProviderMetricsQuery = Static<typeof ProviderMetricsQuery>

const count = (description?: string) =>
  Type.Integer({ format: 'int64', minimum: 0, ...(description !== undefined && { description }) })

const ProviderMetrics = Type.Object({
  provider: Type.String({
    description: `Known values, to which new ones may be added: ${inboxProviders.map((name) => `\`${name}\``).join(', ')}.`,
  }),
  metrics: Type.Object({
    sent: count('Answered by the receiving server, or by the relay.'),
    delivered: count('Taken by it.'),
    opened: count('All opens, repeats included.'),
    clicked: count('All clicks, repeats included.'),
    unique_opened: count('Emails opened at least once, counted when they first were.'),
    unique_clicked: count('Emails with at least one click, counted at the first.'),
    failed: count('Failed to send: never handed over, and not among the sent.'),
    bounced: count('Refused for this recipient, at once or later.'),
    complained: count('Reported as spam.'),
  }),
})
export type ProviderMetrics = Static<typeof ProviderMetrics>
export const ProviderMetricsAnswer = Type.Object({ providers: Type.Array(ProviderMetrics) })

const Rates = Type.Object({
  bounce_rate: Type.Number({ format: 'double', description: 'Bounced among the sent.' }),
  complaint_rate: Type.Number({ format: 'double', description: 'Reported as spam among the delivered.' }),
})
export const Reputation = Type.Object({ last_24_hours: Rates, last_7_days: Rates, last_30_days: Rates })
export type Reputation = Static<typeof Reputation>

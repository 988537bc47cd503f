import type { EmailContext } from '../context.ts'

/** What the operations on metrics of email are made of. */
export type EmailMetricsContext = Pick<EmailContext, 'db' | 'secrets' | 'serverEmail'>

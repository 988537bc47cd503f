import type { EmailContext } from '../context.ts'

/** What the operations on email metrics depend on. */
export type EmailMetricsContext = Pick<EmailContext, 'db' | 'secrets' | 'serverEmail'>

// The headers of a mail from which providers take what they bring back with each event: our reference. A mail has those of the
// providers that may tell of it, and no others.

import type { AppId } from '../../../lib/ids.ts'
import { splitAtPlaceholders } from '../../../lib/placeholders.ts'
import type { ReferenceHeader } from '../../../messages/email/port.ts'
import { referencePlaceholder } from '../../../messages/email/urls.ts'
import type { Db } from '../../../storage/db.ts'
import type { EmailEventSource } from './source.ts'
import { findSources } from './store.ts'

const report = referencePlaceholder('report')
const HEADERS: Record<EmailEventSource, ReferenceHeader> = {
  // SES shows the headers themselves.
  ses: ['X-Carillon-Ref', splitAtPlaceholders(report)],
  mailgun: ['X-Mailgun-Variables', splitAtPlaceholders(`{"carillon_ref":"${report}"}`)],
  sendgrid: ['X-SMTPAPI', splitAtPlaceholders(`{"unique_args":{"carillon_ref":"${report}"}}`)],
  postmark: ['X-PM-Metadata-carillon_ref', splitAtPlaceholders(report)],
}

export async function findReferenceHeaders(db: Db, appId: AppId): Promise<ReferenceHeader[]> {
  const found = await findSources(db, appId)
  return found.map(({ source }) => HEADERS[source]).sort(([a], [b]) => (a < b ? -1 : 1))
}

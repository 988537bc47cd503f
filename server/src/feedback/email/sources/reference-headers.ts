// The mail headers from which providers take our reference to return it with each event. A mail carries only the
// headers of the providers that are configured as the app's event sources.

import type { AppId } from '../../../lib/ids.ts'
import { splitAtPlaceholders } from '../../../lib/placeholders.ts'
import type { ReferenceHeader } from '../../../messages/email/port.ts'
import { referencePlaceholder } from '../../../messages/email/urls.ts'
import type { Db } from '../../../storage/db.ts'
import type { EmailEventSource } from './source.ts'
import { findSources } from './store.ts'

const report = referencePlaceholder('report')
const HEADERS: Record<EmailEventSource, ReferenceHeader> = {
  // SES returns the original headers with each event.
  ses: ['X-Carillon-Ref', splitAtPlaceholders(report)],
  mailgun: ['X-Mailgun-Variables', splitAtPlaceholders(`{"carillon_ref":"${report}"}`)],
  sendgrid: ['X-SMTPAPI', splitAtPlaceholders(`{"unique_args":{"carillon_ref":"${report}"}}`)],
  postmark: ['X-PM-Metadata-carillon_ref', splitAtPlaceholders(report)],
}

export async function findReferenceHeaders(db: Db, appId: AppId): Promise<ReferenceHeader[]> {
  const found = await findSources(db, appId)
  return found.map(({ source }) => HEADERS[source]).sort(([a], [b]) => (a < b ? -1 : 1))
}

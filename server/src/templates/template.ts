// A stored template, and its representation in answers.

import { AppError } from '../lib/errors.ts'
import type { Id } from '../lib/ids.ts'
import { type ContentChannel, type ContentFields, PLATFORMS } from './content.ts'
import type { EmailHtml } from './content-sources.ts'

export type TemplateId = Id<'template'>

export type Template = {
  id: TemplateId
  name: string
  channel: ContentChannel
  content: ContentFields
  emailHtml: EmailHtml
  dynamicContent: string | null
  revision: number
  createdAt: Date
  updatedAt: Date
}

/** The period in which content is not rendered because it kept hitting its time limit. */
export type Suspension = { fingerprint: string; since: Date; until: Date }

export type TemplateSummary = Pick<Template, 'id' | 'name' | 'createdAt' | 'updatedAt'>

export const templateNotFound = () => new AppError('not-found', { code: 'template-0', title: 'template not found' })

export const summaryObject = ({ id, name, createdAt, updatedAt }: TemplateSummary) => ({
  id,
  name,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
})

/** Fields that appear in answers even when they are empty. */
const DEFAULT_FIELDS = {
  headings: null,
  subtitle: null,
  contents: null,
  global_image: null,
  url: null,
  isEmail: false,
  email_body: null,
  email_subject: null,
  email_preheader: null,
  email_from_address: null,
  email_from_name: null,
  email_reply_to_address: null,
  disable_email_click_tracking: false,
  isSMS: false,
  sms_from: null,
  sms_media_urls: null,
}

export function templateObject(template: Template, suspension?: Suspension) {
  const { channel, content, dynamicContent } = template
  // A push message goes to every platform, unless platforms are named: then only to those.
  const isNamed = PLATFORMS.some((name) => content[name])
  const platforms = Object.fromEntries(
    PLATFORMS.map((name) => [name, channel === 'push' && (isNamed ? content[name] === true : true)]),
  )
  return {
    ...summaryObject(template),
    channel,
    ...(suspension && { suspended: { since: suspension.since.toISOString(), until: suspension.until.toISOString() } }),
    content: {
      ...platforms,
      ...DEFAULT_FIELDS,
      ...content,
      ...platforms,
      ...(dynamicContent !== null && { dynamic_content: dynamicContent }),
    },
  }
}

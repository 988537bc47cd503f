// Checks what the content schema cannot express: that a text is an address, a language, or fit for a mail header.

import { AppError, invalid } from '../lib/errors.ts'
import { isMediaType } from '../lib/media-type.ts'
import { ownProperty } from '../lib/own-property.ts'
import { isEmail, isPhoneNumber } from '../users/subscriptions/subscription.ts'
import {
  type ContentAttachment,
  type ContentChannel,
  type ContentField,
  type ContentFields,
  channelOf,
  hasAny,
} from './content.ts'
import { type ByLanguage, LANGUAGES, textInLanguage, textsByPath } from './language.ts'
import { hasLiquid } from './render/source.ts'

const MAX_DATA_BYTES = 2_048

/** Web addresses. With Liquid in them, the rendered result is checked instead. */
export const WEB_ADDRESSES = [
  'web_url',
  'global_image',
  'chrome_web_icon',
  'chrome_web_image',
  'chrome_web_badge',
  'firefox_icon',
  'chrome_icon',
  'chrome_big_picture',
] as const satisfies ContentField[]
/** Web addresses, or names of images bundled with the app. */
export const PICTURES = [
  'small_icon',
  'large_icon',
  'big_picture',
  'huawei_small_icon',
  'huawei_large_icon',
  'huawei_big_picture',
  'adm_small_icon',
  'adm_large_icon',
  'adm_big_picture',
] as const satisfies ContentField[]
/** Addresses that a tap opens, on the web or inside an app. */
export const LINKS = ['url', 'app_url'] as const satisfies ContentField[]
export const ADDRESSES = [...LINKS, ...WEB_ADDRESSES, ...PICTURES]
const addressFields: ReadonlySet<string> = new Set(ADDRESSES)
export const hasAddresses = (content: ContentFields) => hasAny(content, addressFields)
export const LANGUAGE_MAPS = [
  'contents',
  'headings',
  'subtitle',
  'android_group_message',
  'adm_group_message',
] as const satisfies ContentField[]
/** Fields of an email: one text for everybody, or texts by language. */
export const EMAIL_TEXTS = ['email_subject', 'email_preheader', 'email_body'] as const satisfies ContentField[]
const languages: ReadonlySet<string> = new Set(LANGUAGES)
/** Mail header lines other than the subject. */
const HEADER_FIELDS = [
  'email_from_name',
  'email_from_address',
  'email_reply_to_address',
  'email_sender_domain',
] as const satisfies ContentField[]
const emailFields: ReadonlySet<string> = new Set<ContentField>([
  ...HEADER_FIELDS,
  'email_subject',
  'email_bcc',
  'email_attachments',
])

/** The error text of the public service. */
export const ONE_CHANNEL =
  'Platforms You may only send to one delivery channel at a time. Make sure you are only including one of push platforms, Email, or SMS.'

/** Reports all problems with the content at once. */
export function checkContent(content: ContentFields): void {
  const problems = findProblems(content)
  if (problems.length > 0)
    throw new AppError('invalid', ...problems.slice(0, 20).map((title) => ({ code: 'request-0', title })))
}

function findProblems(content: ContentFields): string[] {
  const problems: string[] = []
  if (content.isEmail && content.isSMS) problems.push(ONE_CHANNEL)
  addMissingFields(problems, content, channelOf(content))
  for (const field of LANGUAGE_MAPS) addUnknownLanguages(problems, field, content[field])
  for (const field of EMAIL_TEXTS) addUnknownLanguages(problems, field, content[field])
  if (hasAddresses(content)) addAddressProblems(problems, content)
  content.sms_media_urls?.forEach((media, i) => {
    if (isInvalid(media, isWebAddress)) problems.push(notWebAddress(`sms_media_urls[${i}]`))
  })
  for (const id in content.ios_attachments)
    if (isInvalid(ownProperty(content.ios_attachments, id), isPicture))
      problems.push(notWebAddress(`ios_attachments.${clip(id)}`))
  content.web_buttons?.forEach(({ icon, url }, i) => {
    if (isInvalid(url, isWebAddress)) problems.push(notWebAddress(`web_buttons[${i}].url`))
    if (isInvalid(icon, isWebAddress)) problems.push(notWebAddress(`web_buttons[${i}].icon`))
  })
  if (content.data && Buffer.byteLength(JSON.stringify(content.data)) > MAX_DATA_BYTES)
    problems.push(`data must have at most ${MAX_DATA_BYTES} bytes`)
  if (hasAny(content, emailFields)) problems.push(...findEmailProblems(content))
  if (content.sms_from && !isPhoneNumber(content.sms_from))
    problems.push('sms_from must be a phone number in E.164 form, such as +15558675309')
  return problems
}

function addUnknownLanguages(problems: string[], field: string, texts: ByLanguage | null | undefined): void {
  if (typeof texts !== 'object') return
  for (const code in texts)
    if (!languages.has(code))
      problems.push(`${field}: "${clip(code)}" is not one of the languages ${LANGUAGES.join(', ')}`)
}

function addMissingFields(problems: string[], content: ContentFields, channel: ContentChannel): void {
  if (channel === 'email') {
    for (const field of ['email_subject', 'email_body'] as const)
      if ((textInLanguage(content[field], 'en') ?? '').trim() === '')
        problems.push(`${field}${typeof content[field] === 'object' ? '.en' : ''} is required for an email`)
  } else if (!content.contents?.en && !content.content_available)
    problems.push('Message Notifications must have English language content')
}

function addAddressProblems(problems: string[], content: ContentFields): void {
  for (const field of WEB_ADDRESSES) if (isInvalid(content[field], isWebAddress)) problems.push(notWebAddress(field))
  for (const field of PICTURES)
    if (isInvalid(content[field], isPicture))
      problems.push(`${field} must be an http or https address, or the name of a picture in the app`)
  for (const field of LINKS)
    if (isInvalid(content[field], isLink)) problems.push(`${field} must be an address such as https://example.com`)
}

function* findEmailProblems(content: ContentFields): Generator<string> {
  const headers = HEADER_FIELDS.map((field): [string, string] => [field, content[field] ?? ''])
  for (const [field, text] of [...textsByPath('email_subject', content.email_subject), ...headers])
    if (hasControlCharacters(text)) yield `${field} must be one line, without control characters`
  const { email_from_address: from, email_reply_to_address: replyTo, email_sender_domain: domain } = content
  if (from && !isEmail(from)) yield 'email_from_address must be an email address'
  if (replyTo && !hasLiquid(replyTo) && !isEmail(replyTo)) yield 'email_reply_to_address must be an email address'
  if (domain && !isEmail(`x@${domain}`)) yield 'email_sender_domain must be a domain such as mail.example.com'
  for (const [i, address] of (content.email_bcc ?? []).entries())
    if (!isEmail(address)) yield `email_bcc[${i}] must be an email address`
  for (const [i, attachment] of (content.email_attachments ?? []).entries())
    for (const problem of findAttachmentProblems(attachment)) yield `email_attachments[${i}].${problem}`
}

/** All emails of a message share one attachment, so it cannot vary by recipient. */
function* findAttachmentProblems({ url, filename, content_type: type }: ContentAttachment): Generator<string> {
  if (hasLiquid(url)) yield 'url cannot hold Liquid'
  else if (hasControlCharacters(url) || !isWebAddress(url)) yield notWebAddress('url')
  if (filename && hasLiquid(filename)) yield 'filename cannot hold Liquid'
  if (filename && (hasControlCharacters(filename) || /[/\\]/.test(filename)))
    yield 'filename must be a name without slashes and control characters'
  if (type && !isMediaType(type)) yield 'content_type must be one such as application/pdf, without parameters'
}

/**
 * Attachments let anybody who may send email make the server fetch any URL it can reach, so the operator must allow
 * them.
 */
export function checkMayAttach({ email_attachments: attachments }: ContentFields, mayAttach: boolean): void {
  if (!mayAttach && attachments && attachments.length > 0)
    throw invalid(
      'email_attachments are not allowed on this server: its operator can allow them by the setting EMAIL_ATTACHMENTS_MB',
    )
}

const notWebAddress = (field: string) => `${field} must be an http or https address`
const isInvalid = (value: string | null | undefined, isRight: (text: string) => boolean) =>
  value !== undefined &&
  value !== null &&
  value !== '' &&
  (hasControlCharacters(value) || (!hasLiquid(value) && !isRight(value)))

const hasControlCharacters = (text: string) => /[\p{Cc}\u2028\u2029]/u.test(text)
const SCHEME = /^([a-z][a-z0-9+.-]*):/i
/** Schemes that run code or read from the device, wherever they are opened. */
const DANGEROUS_SCHEMES = /^(javascript|data|vbscript|file|blob)$/i

export const isWebAddress = (text: string) => /^https?:\/\//i.test(text) && URL.canParse(text)
const isPicture = (text: string) => isWebAddress(text) || (!SCHEME.test(text) && !/[\s<>"]/.test(text))
export const isLink = (text: string) => {
  const scheme = SCHEME.exec(text)?.[1]
  if (scheme === undefined || DANGEROUS_SCHEMES.test(scheme)) return false
  return /^https?$/i.test(scheme) ? isWebAddress(text) : !/[\s<>"]/.test(text)
}

const clip = (text: string) => (text.length > 40 ? `${text.slice(0, 40).toWellFormed()}…` : text)

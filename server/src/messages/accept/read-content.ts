// Reads the content of a message and its channel: the template as it is now, with the request's own fields on top.

import { invalid } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import { checkContent, ONE_CHANNEL } from '../../templates/check-content.ts'
import { type ContentChannel, type ContentFields, PLATFORMS, readContent } from '../../templates/content.ts'
import type { EmailHtml } from '../../templates/content-sources.ts'
import { prepareContent, usesLiquid } from '../../templates/prepare-content.ts'
import type { Renderer } from '../../templates/render/renderer.ts'
import type { Template } from '../../templates/template.ts'
import type { CreateMessageBody } from '../schema.ts'
import { namesPlatform } from './platforms.ts'

export type MessageContent = { channel: ContentChannel; content: ContentFields; emailHtml: EmailHtml }

/** `targetingChannel` is the channel that the way of targeting implies. */
export async function readMessageContent(
  renderer: Renderer,
  appId: AppId,
  body: CreateMessageBody,
  targetingChannel: ContentChannel | undefined,
  template: Template | undefined,
): Promise<MessageContent> {
  const own = readContent(body)
  const channel = readChannel(body, own, targetingChannel, template)
  if (own.url && (own.web_url || own.app_url))
    throw invalid(`url cannot be combined with ${own.web_url ? 'web_url' : 'app_url'}`)
  const content = withChannelFlags(channel, template ? mergeContent(template.content, own) : own)
  // A template was prepared and checked when it was saved.
  if (template && own.email_body === undefined && !usesLiquid(own)) {
    checkContent(content)
    return { channel, content, emailHtml: template.emailHtml }
  }
  const emailHtml = await prepareContent(renderer, appId, content, template?.dynamicContent ?? null)
  return { channel, content, emailHtml }
}

/** All fields of the request that name a channel must agree. If none does, the content decides. */
function readChannel(
  body: CreateMessageBody,
  own: ContentFields,
  targetingChannel: ContentChannel | undefined,
  template: Template | undefined,
): ContentChannel {
  const channel = oneChannelOf([
    body.target_channel,
    body.channel_for_external_user_ids,
    targetingChannel,
    own.isEmail ? 'email' : undefined,
    own.isSMS ? 'sms' : undefined,
    namesPlatform(own) ? 'push' : undefined,
  ])
  if (template && channel !== undefined && channel !== template.channel)
    throw invalid(`template_id names a template for ${template.channel}, and the message is for ${channel}`)
  return template?.channel ?? channel ?? channelOfContent(own)
}

function oneChannelOf(named: readonly (ContentChannel | null | undefined)[]): ContentChannel | undefined {
  const channels = new Set(named.filter((channel) => channel !== null && channel !== undefined))
  if (channels.size > 1) throw invalid(ONE_CHANNEL)
  return [...channels][0]
}

function channelOfContent(own: ContentFields): ContentChannel {
  if (own.email_subject !== undefined || own.email_body !== undefined) return 'email'
  for (const field of ['sms_from', 'sms_media_urls'] as const)
    if (own[field] !== undefined) throw invalid(`${field} needs target_channel sms`)
  return 'push'
}

/** The request's own fields replace those of the template, and also the fields that mean the same or exclude them. */
function mergeContent(template: ContentFields, own: ContentFields): ContentFields {
  const base: ContentFields = { ...template }
  if (PLATFORMS.some((name) => own[name] !== undefined)) for (const name of PLATFORMS) delete base[name]
  if (own.url || own.web_url || own.app_url)
    for (const name of ['url', 'web_url', 'app_url'] as const) delete base[name]
  return { ...base, ...own }
}

function withChannelFlags(channel: ContentChannel, content: ContentFields): ContentFields {
  if (channel === 'push' && content.isEmail === undefined && content.isSMS === undefined) return content
  const { isEmail: _, isSMS: __, ...rest } = content
  if (channel === 'email') return { ...rest, isEmail: true }
  return channel === 'sms' ? { ...rest, isSMS: true } : rest
}

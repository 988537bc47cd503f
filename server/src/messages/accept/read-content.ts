// What a message says and on which channel: the template as it is now, and the request's own fields on top of it.

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
import { channelOfTargeting, type Targeting } from './read-targeting.ts'

export type MessageContent = { channel: ContentChannel; content: ContentFields; emailHtml: EmailHtml }

/** At hand at once, unless there is Liquid or MJML in it. */
export function readMessageContent(
  renderer: Renderer,
  appId: AppId,
  body: CreateMessageBody,
  targeting: Targeting,
  template: Template | undefined,
): MessageContent | Promise<MessageContent> {
  const own = readContent(body)
  const channel = readChannel(body, own, targeting, template)
  if (own.url && (own.web_url || own.app_url))
    throw invalid(`url cannot be combined with ${own.web_url ? 'web_url' : 'app_url'}`)
  const content = forChannel(channel, template ? onTopOf(template.content, own) : own)
  // A template was checked when it was saved.
  if (template && own.email_body === undefined && !usesLiquid(own)) {
    checkContent(content)
    return { channel, content, emailHtml: template.emailHtml }
  }
  const prepared = prepareContent(renderer, appId, content, template?.dynamicContent ?? null)
  if (prepared === null) return { channel, content, emailHtml: null }
  return prepared.then((emailHtml) => ({ channel, content, emailHtml }))
}

/** All that the request says about the channel must agree; where it says nothing, its content does. */
function readChannel(
  body: CreateMessageBody,
  own: ContentFields,
  targeting: Targeting,
  template?: Template,
): ContentChannel {
  let channel: ContentChannel | undefined
  const hear = (said: ContentChannel | null | undefined) => {
    if (!said) return
    if (channel !== undefined && channel !== said) throw invalid(ONE_CHANNEL)
    channel = said
  }
  hear(body.target_channel)
  hear(body.channel_for_external_user_ids)
  hear(channelOfTargeting(targeting))
  if (own.isEmail) hear('email')
  if (own.isSMS) hear('sms')
  if (namesPlatform(own)) hear('push')
  if (template) {
    if (channel !== undefined && channel !== template.channel)
      throw invalid(`template_id names a template for ${template.channel}, and the message is for ${channel}`)
    return template.channel
  }
  if (channel !== undefined) return channel
  if (own.email_subject !== undefined || own.email_body !== undefined) return 'email'
  const ofSms =
    own.sms_from !== undefined ? 'sms_from' : own.sms_media_urls !== undefined ? 'sms_media_urls' : undefined
  if (ofSms) throw invalid(`${ofSms} needs target_channel sms`)
  return 'push'
}

/** Fields that mean the same or exclude each other go together. */
function onTopOf(template: ContentFields, own: ContentFields): ContentFields {
  const below: ContentFields = { ...template }
  if (PLATFORMS.some((name) => own[name] !== undefined)) for (const name of PLATFORMS) delete below[name]
  if (own.url || own.web_url || own.app_url)
    for (const name of ['url', 'web_url', 'app_url'] as const) delete below[name]
  return { ...below, ...own }
}

function forChannel(channel: ContentChannel, given: ContentFields): ContentFields {
  if (channel === 'push' && given.isEmail === undefined && given.isSMS === undefined) return given
  const { isEmail: _, isSMS: __, ...content } = given
  if (channel === 'email') return { ...content, isEmail: true }
  return channel === 'sms' ? { ...content, isSMS: true } : content
}

// What a message says and on which channel: the template as it is now, and the request's own fields on top of it.

import { invalid } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import { checkContent, ONE_CHANNEL } from '../../templates/check-content.ts'
import { type Channel, type Content, PLATFORMS, readContent } from '../../templates/content.ts'
import { allSources } from '../../templates/content-sources.ts'
import { prepareContent } from '../../templates/prepare.ts'
import type { Renderer } from '../../templates/render/renderer.ts'
import { hasLiquid } from '../../templates/render/source.ts'
import type { Template } from '../../templates/template.ts'
import type { CreateMessageBody } from '../schema.ts'
import { namesPlatform } from './platforms.ts'
import { channelOfTargeting, type Targeting } from './read-targeting.ts'

export type MessageContent = { channel: Channel; content: Content; emailHtml: string | null }

export async function readMessageContent(
  renderer: Renderer,
  appId: AppId,
  body: CreateMessageBody,
  targeting: Targeting,
  template: Template | undefined,
): Promise<MessageContent> {
  const own = readContent(body)
  const channel = readChannel(body, own, targeting, template)
  if (own.url && (own.web_url || own.app_url))
    throw invalid(`url cannot be combined with ${own.web_url ? 'web_url' : 'app_url'}`)
  const content = forChannel(channel, template ? onTopOf(template.content, own) : own)
  // A template was checked when it was saved.
  if (template && own.email_body === undefined && !hasLiquidIn(own)) {
    checkContent(content)
    return { channel, content, emailHtml: template.emailHtml }
  }
  return { channel, content, emailHtml: await prepareContent(renderer, appId, content) }
}

const hasLiquidIn = (content: Content) => Object.values(allSources(content, null)).some(({ text }) => hasLiquid(text))

/** All that the request says about the channel must agree; where it says nothing, its content does. */
function readChannel(body: CreateMessageBody, own: Content, targeting: Targeting, template?: Template): Channel {
  const said = new Set<Channel>()
  if (body.target_channel) said.add(body.target_channel)
  if (body.channel_for_external_user_ids) said.add(body.channel_for_external_user_ids)
  const ofTargeting = channelOfTargeting(targeting)
  if (ofTargeting) said.add(ofTargeting)
  if (own.isEmail) said.add('email')
  if (own.isSMS) said.add('sms')
  if (namesPlatform(own)) said.add('push')
  if (said.size > 1) throw invalid(ONE_CHANNEL)
  const [channel] = said
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
function onTopOf(template: Content, own: Content): Content {
  const below: Content = { ...template }
  if (PLATFORMS.some((name) => own[name] !== undefined)) for (const name of PLATFORMS) delete below[name]
  if (own.url || own.web_url || own.app_url)
    for (const name of ['url', 'web_url', 'app_url'] as const) delete below[name]
  return { ...below, ...own }
}

function forChannel(channel: Channel, { isEmail: _, isSMS: __, ...content }: Content): Content {
  if (channel === 'email') return { ...content, isEmail: true }
  return channel === 'sms' ? { ...content, isSMS: true } : content
}

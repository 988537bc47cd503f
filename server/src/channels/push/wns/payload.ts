// The payload for Windows: a toast in XML whose `launch` the SDK reads. A message that shows nothing goes to the app
// unchanged.

import { ownProperty } from '../../../lib/own-property.ts'
import { sha256 } from '../../../lib/secrets.ts'
import { compact, nearestPriority, type PushButton, type PushContent } from '../content.ts'

export type WnsPush = {
  type: 'wns/toast' | 'wns/raw'
  body: string
  /** 1 is the highest of four priorities. */
  priority: 1 | 2 | 3 | 4
  expiresAt: Date
  tag: string | undefined
}

/** Windows calls these high, medium, low and very low. */
const PRIORITIES = { 10: 1, 5: 2, 3: 3, 1: 4 } as const

/** Called once for all recipients of the same content. */
export function writeWnsPush(content: PushContent): WnsPush {
  const { title, body, collapseId } = content
  const isShown = title !== undefined || body !== undefined
  return {
    type: isShown ? 'wns/toast' : 'wns/raw',
    body: isShown ? toastOf(content) : JSON.stringify(payloadOf(content)),
    priority: PRIORITIES[nearestPriority(content.priority, [1, 3, 5, 10])],
    expiresAt: content.expiresAt,
    tag: collapseId === undefined ? undefined : tagOf(collapseId),
  }
}

const payloadOf = ({ messageId, data, url, templateId }: PushContent) => ({
  custom: compact({ i: messageId, a: data, u: url, ti: templateId }),
})

/** At most 16 letters and digits. */
const tagOf = (collapseId: string) =>
  /^[A-Za-z0-9]{1,16}$/.test(collapseId) ? collapseId : sha256(collapseId).toString('hex').slice(0, 16)

/** The SDK reads the body from the second text, whether or not there is a first. */
function toastOf(content: PushContent): string {
  const { title, body = '', image, sound, buttons = [] } = content
  const template = image === undefined ? 'ToastText02' : 'ToastImageAndText02'
  return [
    `<toast launch="${escapeXml(JSON.stringify(payloadOf(content)))}">`,
    `<visual><binding template="${template}">`,
    image === undefined ? '' : `<image id="1" src="${escapeXml(image)}"/>`,
    title === undefined ? '' : `<text id="1">${escapeXml(title)}</text>`,
    `<text id="2">${escapeXml(body)}</text>`,
    '</binding></visual>',
    buttons.length > 0 ? `<actions>${buttons.map((button) => actionOf(button, content)).join('')}</actions>` : '',
    sound === undefined ? '' : audioOf(sound),
    '</toast>',
  ].join('')
}

function actionOf({ id, text, url }: PushButton, { messageId }: PushContent): string {
  if (url !== undefined)
    return `<action content="${escapeXml(text)}" activationType="protocol" arguments="${escapeXml(url)}"/>`
  const chosen = JSON.stringify({ custom: { i: messageId }, actionSelected: id })
  return `<action content="${escapeXml(text)}" activationType="foreground" arguments="${escapeXml(chosen)}"/>`
}

const SILENT = 'nil'

/** A file that is part of the app, or one of Windows' own sounds, such as ms-winsoundevent:Notification.Mail. */
function audioOf(sound: string): string {
  if (sound === SILENT) return '<audio silent="true"/>'
  return `<audio src="${escapeXml(/^ms-[a-z]+:/.test(sound) ? sound : `ms-appx:///${sound}`)}"/>`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}

/** Characters that XML cannot represent are removed. */
const escapeXml = (text: string) =>
  text
    .toWellFormed()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones meant.
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '')
    .replace(/[&<>"']/g, (sign) => ownProperty(ENTITIES, sign) ?? sign)

// The URLs in an email that differ for each recipient. Each has a placeholder for a reference, signed for the purpose
// of the URL.

import type { ReferencePurpose } from '../../email/reference.ts'
import { placeholder } from '../../lib/placeholders.ts'

export const referencePlaceholder = (purpose: ReferencePurpose) => placeholder(purpose)

/** URLs below the base that belongs to the sending domain. */
export const emailUrls = (base: string) => ({
  unsubscribe: `${base}/e/u/${referencePlaceholder('unsubscribe')}`,
  preferences: `${base}/e/p/${referencePlaceholder('preferences')}`,
  view: `${base}/e/v/${referencePlaceholder('view')}`,
  pixel: `${base}/e/o/${referencePlaceholder('open')}.gif`,
  click: (signature: string, url: string) =>
    `${base}/e/c/${referencePlaceholder('click')}/${signature}?u=${encodeURIComponent(url)}`,
})
export type EmailUrls = ReturnType<typeof emailUrls>

/** HTML editors percent-encode the brackets in links. */
const PLACEHOLDER = /(?:\[|%5B)(unsubscribe_url|view_message_in_browser_url|preferences_url)(?:\]|%5D)/gi

export const hasPlaceholder = (text: string) => text.search(PLACEHOLDER) >= 0
export const hasUnsubscribePlaceholder = (text: string) => /(?:\[|%5B)unsubscribe_url(?:\]|%5D)/i.test(text)

export const fillPlaceholders = (text: string, urls: EmailUrls): string =>
  text.replaceAll(PLACEHOLDER, (_, name: string) => {
    switch (name.toLowerCase()) {
      case 'unsubscribe_url':
        return urls.unsubscribe
      case 'preferences_url':
        return urls.preferences
      default:
        return urls.view
    }
  })

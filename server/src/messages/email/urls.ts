// The addresses in a mail that are its recipient's own. Each has a place for a reference, signed for what the address is for.

import type { ReferencePurpose } from '../../email/reference.ts'
import { placeholder } from '../../lib/placeholders.ts'

export const referencePlaceholder = (purpose: ReferencePurpose) => placeholder(purpose)

/** Under the base that the sending domain has for them. */
export const emailUrls = (base: string) => ({
  unsubscribe: `${base}/e/u/${referencePlaceholder('unsubscribe')}`,
  preferences: `${base}/e/p/${referencePlaceholder('preferences')}`,
  view: `${base}/e/v/${referencePlaceholder('view')}`,
  pixel: `${base}/e/o/${referencePlaceholder('open')}.gif`,
  click: (signature: string, url: string) =>
    `${base}/e/c/${referencePlaceholder('click')}/${signature}?u=${encodeURIComponent(url)}`,
})
export type EmailUrls = ReturnType<typeof emailUrls>

/** Also as editors of HTML write them in links. */
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

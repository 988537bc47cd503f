// Text in which the recipient's reference stands in places. It is kept in the pieces between them, so that what is the same for all
// is put together, and encoded, once.

export type Pieces = readonly string[]

/** Stands for the reference while a text is put together. Nothing that can be stored holds it. */
export const REFERENCE = '\0'

export const piecesOf = (text: string): Pieces => text.split(REFERENCE)

/** The addresses of a mail that are its recipient's own, under the base that its domain has for them. */
export const urlsAt = (base: string) => ({
  unsubscribe: `${base}/e/u/${REFERENCE}`,
  preferences: `${base}/e/p/${REFERENCE}`,
  view: `${base}/e/v/${REFERENCE}`,
  pixel: `${base}/e/o/${REFERENCE}.gif`,
  click: (signature: string, url: string) => `${base}/e/c/${REFERENCE}/${signature}?u=${encodeURIComponent(url)}`,
})
export type MailUrls = ReturnType<typeof urlsAt>

/** Also as editors of HTML write them in links. */
const PLACEHOLDER = /(?:\[|%5B)(unsubscribe_url|view_message_in_browser_url|preferences_url)(?:\]|%5D)/gi

export const hasPlaceholder = (text: string) => text.search(PLACEHOLDER) >= 0
export const hasUnsubscribe = (text: string) => /(?:\[|%5B)unsubscribe_url(?:\]|%5D)/i.test(text)

export const fillPlaceholders = (text: string, urls: MailUrls): string =>
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

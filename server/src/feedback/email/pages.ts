// The few pages that people reach from an email: plain HTML without scripts, in which every value is escaped.

import { ownProperty } from '../../lib/own-property.ts'

export type EmailPage = { status: number; body: string; headers: Record<string, string> }

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
export const escaped = (text: string) => text.replaceAll(/[&<>"']/g, (sign) => ownProperty(ENTITIES, sign) as string)

const STYLE =
  'body{font:1.1rem/1.5 system-ui,sans-serif;margin:0;overflow-wrap:anywhere;color:#1a1a1a;background:#f6f6f4}' +
  'main{max-width:34rem;margin:10vh auto;padding:2rem;background:#fff;border-radius:.5rem}' +
  'h1{font-size:1.4rem;margin-top:0}button{font:inherit;padding:.6rem 1.2rem;border:0;border-radius:.3rem;background:#1a4fa0;color:#fff;cursor:pointer}' +
  'button:focus-visible,input:focus-visible,a:focus-visible{outline:3px solid #f0a000;outline-offset:2px}' +
  'fieldset{border:1px solid #ccc;border-radius:.3rem;margin:0 0 1rem}label{display:block;padding:.2rem 0}a{color:#1a4fa0}'

const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/** Keeps the pages out of caches, search engines and `Referer` headers. */
export const PRIVATE = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex',
}

/** `main` is HTML in which external values are already escaped. */
function page(status: number, title: string, main: string): EmailPage {
  const body =
    '<!doctype html><html lang="en"><head><meta charset="utf-8">' +
    '<meta name="viewport" content="width=device-width, initial-scale=1">' +
    `<title>${escaped(title)}</title><style>${STYLE}</style></head>` +
    `<body><main><h1>${escaped(title)}</h1>${main}</main></body></html>`
  return { status, body, headers: { ...PRIVATE, 'content-security-policy': POLICY } }
}

export const badLinkPage = () =>
  page(400, 'This link is not valid', '<p>It may have been cut off or changed on its way to you.</p>')

export const unknownPage = () =>
  page(404, 'This address is not valid', '<p>It may have been cut off or changed on its way to you.</p>')

export const tooOldPage = () =>
  page(
    410,
    'This email is too old',
    '<p>We no longer keep what is needed to answer this. Please use the link in a more recent email.</p>',
  )

/** The form posts to the page's own address. */
const form = (field: string, button: string) =>
  `<form method="post"><input type="hidden" name="${field}" value="yes"><button type="submit">${button}</button></form>`

export type Preferences = {
  /** The name of the app that sent the email. */
  sender: string
  address: string
  isSubscribed: boolean
}
type Parties = Pick<Preferences, 'sender' | 'address'>

const parties = ({ sender, address }: Parties) =>
  `email from <strong>${escaped(sender)}</strong> to <strong>${escaped(address)}</strong>`

export const askPage = (of: Parties) =>
  page(200, 'Unsubscribe?', `<p>There will be no more ${parties(of)}.</p>${form('unsubscribe', 'Unsubscribe')}`)

export const unsubscribedPage = (of: Parties) =>
  page(
    200,
    'You are unsubscribed',
    `<p>There will be no more ${parties(of)}.</p><p>Was this a mistake?</p>${form('undo', 'Subscribe again')}`,
  )

export const subscribedPage = (of: Parties) =>
  page(200, 'You are subscribed', `<p>There will be ${parties(of)}.</p>${form('unsubscribe', 'Unsubscribe')}`)

/** Shown when the app disabled the subscription, the address bounced, or the recipient complained of spam. */
const stopped = (of: Parties) =>
  `<p role="status">There is no ${parties(of)} for another reason, which cannot be changed here. Please ask the sender.</p>`

export const stoppedPage = (of: Parties) => page(200, 'You are not subscribed', stopped(of))

/** `asked` is the choice that was just submitted; it is undefined when the page is only shown. */
export function preferencesPage({ sender, address, isSubscribed }: Preferences, asked?: boolean): EmailPage {
  const saved = asked === isSubscribed ? '<p role="status">Your choice is saved.</p>' : stopped({ sender, address })
  const choice = (value: string, label: string, isChosen: boolean) =>
    `<label><input type="radio" name="email" value="${value}"${isChosen ? ' checked' : ''}> ${label}</label>`
  return page(
    200,
    'Your email preferences',
    `${asked === undefined ? '' : saved}<form method="post"><fieldset>` +
      `<legend>Email from ${escaped(sender)} to ${escaped(address)}</legend>` +
      choice('subscribed', 'Yes, send me email', isSubscribed) +
      choice('unsubscribed', 'No, send me nothing', !isSubscribed) +
      '</fieldset><button type="submit">Save</button></form>',
  )
}

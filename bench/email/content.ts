// A newsletter as it is tracked: 7.7 KB of HTML with a dozen links and a pixel, the text of it, and the headers that mailbox
// providers ask for.

import type { EmailContent } from '../../server/src/channels/email/message.ts'
import type { Pieces } from '../../server/src/lib/placeholders.ts'

const LINKS = 12
const HTML_BYTES = 7_700
const REFERENCE_BYTES = 55

const link = (n: number) => `/AbCdEfGhIjKlMnOp?u=https%3A%2F%2Fshop.example.com%2Foffers%2F${n}">`
const paragraph = (length: number) =>
  'The bells ring on Sunday, für alle – and for you.\n'.repeat(Math.ceil(length / 50)).slice(0, length)

/** In each row of the letter, so that it has its size when its links are tracked. */
const around = 'https://t.example.com/e/c/'.length + REFERENCE_BYTES + 60
const filler = Math.floor((HTML_BYTES - LINKS * (around + link(10).length)) / LINKS)

/** With places for references. */
function html(): Pieces {
  const ends = Array.from({ length: LINKS }, (_, n) => link(n))
  const row = `<tr><td style="padding: 8px">  <p>${paragraph(filler)}</p>  <a href="https://t.example.com/e/c/`
  return [
    `<!doctype html><html><body><table>${row}`,
    'click',
    ...ends.slice(0, -1).flatMap((end) => [`${end}Look</a></td></tr>\n${row}`, 'click']),
    `${ends.at(-1)}Look</a></td></tr></table><img src="https://t.example.com/e/o/`,
    'open',
    '.gif" width="1" height="1"></body></html>\n',
  ]
}

/** Of each row of the newsletter, the rest is style: its text is made of what it says. */
const SAID = 100
const STYLE = 'padding: 8px 16px; font-family: Georgia, serif; line-height: 150%; color: #333333; '.repeat(10)

/** As it is handed in: its links lead where they lead. */
export const newsletter = {
  email_subject: 'They ring for you – 20 % off',
  email_body: `<!doctype html><html><body><table>${Array.from(
    { length: LINKS },
    (_, n) =>
      `<tr><td style="${STYLE.slice(0, filler - SAID)}">  <p>${paragraph(SAID)}</p>  <a href="https://shop.example.com/offers/${n}">Look</a></td></tr>`,
  ).join('\n')}</table></body></html>`,
}

/** As the engine hands it over. */
export const content: EmailContent = {
  from: { name: 'Bells & Söhne', address: 'news@example.com' },
  replyTo: 'answers@example.com',
  subject: 'They ring for you – 20 % off',
  html: html(),
  text: [`${paragraph(1_500)}\nUnsubscribe: https://t.example.com/e/u/`, 'unsubscribe', '\n'],
  headers: [
    ['List-Unsubscribe', ['<https://t.example.com/e/u/', 'unsubscribe', '>']],
    ['List-Unsubscribe-Post', ['List-Unsubscribe=One-Click']],
    ['Feedback-ID', ['11111111-1111-4111-8111-111111111111:22222222-2222-4222-8222-222222222222:google:carillon']],
  ],
}

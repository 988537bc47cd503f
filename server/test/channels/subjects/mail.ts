import type { EmailContent, EmailItem } from '../../../src/channels/email/message.ts'

export const CONTENT: EmailContent = {
  from: { name: 'Bells & Söhne', address: 'news@example.com' },
  replyTo: 'answers@example.com',
  subject: 'They ring – für alle 🎉',
  html: [
    '<p>They ring <a href="https://t.example.com/e/c/',
    'click',
    '/sig?u=x">here</a></p>\n.\n<img src="https://t.example.com/e/o/',
    'open',
    '.gif">',
  ],
  text: ['They ring\n.\nhttps://t.example.com/e/u/', 'stop', ''],
  headers: [
    [
      'List-Unsubscribe',
      ['<https://t.example.com/e/u/', 'stop', '>, <mailto:b-', 'stop', '@bounce.example.com?subject=unsubscribe>'],
    ],
    ['List-Unsubscribe-Post', ['List-Unsubscribe=One-Click']],
    ['Feedback-ID', ['m1:a1:google:carillon']],
  ],
}

let made = 0

export function aMail(changes: Partial<EmailItem> = {}): EmailItem {
  const n = ++made
  const reference = `ref${String(n).padStart(52, 'a')}`
  return {
    content: CONTENT,
    reference,
    referenceFor: (place) => `${place}${reference.slice(place.length)}`,
    to: `marker-${n}@recipients.example`,
    messageIdHeader: `<m${n}.2601@example.com>`,
    envelopeFrom: `b-${reference}@bounce.example.com`,
    date: new Date('2030-01-01T09:00:00Z'),
    dkim: [],
    inboxProvider: 'other',
    source: { appId: 'an app', lane: 'bulk' },
    ...changes,
  }
}

import { describe, expect, test } from 'vitest'
import { cpuTimeMs } from '../../../test/cpu-time.ts'
import { type BounceClass, bounceReasons, classifyBounce, isBounce } from './classify-bounce.ts'

/** Replies as the large providers and the usual servers write them. */
const REPLIES: [BounceClass, string][] = [
  // Gmail
  [
    'hard',
    "550 5.1.1 The email account that you tried to reach does not exist. Please try double-checking the recipient's email address for typos or unnecessary spaces. For more information, go to https://support.google.com/mail/?p=NoSuchUser a1-20020a05 - gsmtp",
  ],
  [
    'hard',
    '550 5.2.1 The email account that you tried to reach is disabled. https://support.google.com/mail/?p=DisabledUser - gsmtp',
  ],
  ['hard', '550 5.2.1 The email account that you tried to reach is inactive. - gsmtp'],
  [
    'full',
    "552 5.2.2 The recipient's inbox is out of storage space and inactive. Please direct the recipient to https://support.google.com/mail/?p=OverQuotaPerm - gsmtp",
  ],
  ['full', '452 4.2.2 The email account that you tried to reach is over quota and inactive. - gsmtp'],
  [
    'block',
    '550 5.7.26 This mail has been blocked because the sender is unauthenticated. Gmail requires all senders to authenticate with either SPF or DKIM. - gsmtp',
  ],
  [
    'block',
    '550 5.7.1 Our system has detected that this message is likely unsolicited mail. To reduce the amount of spam sent to Gmail, this message has been blocked. - gsmtp',
  ],
  [
    'block',
    '550 5.7.1 The user or domain that you are sending to (or from) has a policy that prohibited the mail that you sent. - gsmtp',
  ],
  [
    'transient',
    '421 4.7.28 Our system has detected an unusual rate of unsolicited mail originating from your IP address. - gsmtp',
  ],
  [
    'transient',
    '450 4.2.1 The user you are trying to contact is receiving mail at a rate that prevents additional messages from being delivered. - gsmtp',
  ],
  ['soft', "552 5.3.4 Your message exceeded Google's message size limits. - gsmtp"],
  ['hard', '550 5.4.5 no such domain: the host does not exist'],
  // Outlook, Hotmail, Microsoft 365
  [
    'hard',
    '550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302). [AM6EUR05FT014.eop-eur05.prod.protection.outlook.com]',
  ],
  ['hard', '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup'],
  [
    'hard',
    '550 5.4.1 Recipient address rejected: Access denied. AS(201806281) [DB5EUR03FT021.eop-EUR03.prod.protection.outlook.com]',
  ],
  ['hard', '550 5.4.310 DNS domain contoso.example does not exist [Message=InfoDomainNonexistent]'],
  [
    'block',
    "550 5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3150).",
  ],
  ['block', '550 5.7.515 Access denied, sending domain example.com does not meet the required authentication level.'],
  [
    'block',
    '550 5.7.606 Access denied, banned sending IP [192.0.2.1]. To request removal from this list please visit https://sender.office.com/',
  ],
  [
    'full',
    '552 5.2.2 mailbox full; STOREDRV.Deliver.Exception:QuotaExceededException.MapiExceptionShutoffQuotaExceeded',
  ],
  ['full', '554 5.2.2 mailbox full'],
  ['transient', '451 4.7.650 The mail server [192.0.2.1] has been temporarily rate limited due to IP reputation.'],
  ['transient', '451 4.7.500 Server busy. Please try again later from [192.0.2.1]. (S77719)'],
  ['soft', '554 5.4.14 Hop count exceeded - possible mail loop ATTR34'],
  [
    'block',
    "550 SC-001 (BAY004-MC1F12) Unfortunately, messages from 192.0.2.1 weren't sent because of policy reasons.",
  ],
  // Yahoo, AOL
  [
    'hard',
    "554 delivery error: dd This user doesn't have a yahoo.com account (somebody@yahoo.com) [0] - mta1234.mail.gq1.yahoo.com",
  ],
  ['hard', '554 delivery error: dd Requested mail action aborted, mailbox not found (#MBR1212)'],
  ['hard', '552 1 Requested mail action aborted, mailbox not found'],
  ['block', "553 5.7.1 [BL21] Connections will not be accepted from 192.0.2.1, because the ip is in Spamhaus's list"],
  [
    'block',
    '554 Message not allowed - [PH01] Email not accepted for policy reasons. Please visit https://postmaster.yahooinc.com/error-codes',
  ],
  ['block', '554 5.7.9 Message not accepted for policy reasons. See https://postmaster.yahooinc.com/error-codes'],
  [
    'transient',
    '421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume or user complaints - 4.16.55.1',
  ],
  ['full', '552 5.2.2 The email account that you tried to reach is over quota'],
  ['hard', '550 relaying denied: recipient address unknown'],
  // Apple
  ['hard', '550 5.1.1 <a@icloud.com>: user does not exist'],
  ['hard', '550 5.1.6 recipient no longer on server: a@icloud.com'],
  ['full', '552 5.2.2 <a@icloud.com>: user is over quota'],
  [
    'block',
    '554 5.7.1 [CS01] Message rejected due to local policy. Please visit https://support.apple.com/en-us/HT204137',
  ],
  // Postfix
  ['hard', '550 5.1.1 <a@example.net>: Recipient address rejected: User unknown in local recipient table'],
  ['hard', '550 5.1.1 <a@example.net>: Recipient address rejected: User unknown in virtual mailbox table'],
  ['hard', '550 5.1.2 <a@example.net>: Recipient address rejected: Domain not found'],
  ['block', '554 5.7.1 <a@example.net>: Relay access denied'],
  [
    'block',
    '554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org; https://www.spamhaus.org/query/ip/192.0.2.1',
  ],
  ['block', '550 5.1.8 <a@example.com>: Sender address rejected: Domain not found'],
  ['transient', '450 4.1.1 <a@example.net>: Recipient address rejected: unverified address'],
  ['transient', '450 4.2.0 <a@example.net>: Recipient address rejected: Greylisted, see http://postgrey.example/help'],
  ['transient', '451 4.3.0 <a@example.net>: Temporary lookup failure'],
  ['transient', '452 4.3.1 Insufficient system storage'],
  ['soft', '5.4.7 delivery time expired'],
  ['soft', '4.4.7 delivery time expired'],
  ['hard', '5.4.4 Host or domain name not found. Name service error for name=exmaple.example type=A: Host not found'],
  ['full', '552 5.2.2 <a@example.net>: Quota exceeded (mailbox for user is full)'],
  ['soft', '552 5.3.4 Message size exceeds fixed limit'],
  ['soft', '554 5.4.6 Too many hops'],
  // Exim
  ['hard', '550 Unrouteable address'],
  ['hard', '550 No such user here'],
  ['hard', '550-Callout verification failed: 550 550 no such recipient here'],
  ['hard', '550 Unknown user'],
  ['block', '550 rejected because 192.0.2.1 is in a black list at bl.spamcop.net'],
  ['block', '550 This message was classified as SPAM and may not be delivered'],
  ['full', '550 Mailbox quota exceeded for this recipient'],
  ['transient', '451 Temporary local problem - please try later'],
  // Others
  ['hard', '550 #5.1.0 Address rejected a@example.net'],
  ['hard', '550 5.1.3 Invalid address format'],
  ['hard', '550 <a@example.net>: invalid mailbox'],
  ['hard', '551 User not found; not a known user here'],
  [
    'hard',
    '550 Requested action not taken: mailbox unavailable For explanation visit https://postmaster.gmx.net/en/case?c=r0301',
  ],
  [
    'block',
    '554 Transaction failed Reject due to policy restrictions. For explanation visit https://postmaster.gmx.net/en/case?c=hi',
  ],
  ['hard', '550 5.1.1 unknown or illegal alias: a@example.net (qq.com)'],
  ['block', '550 Mail content denied. https://service.mail.qq.com/detail/0/62 Spam'],
  ['hard', '550 MAILBOX NOT FOUND'],
  [
    'hard',
    '550 non-existent mailbox (mail.ru): invalid mailbox. Local mailbox a@mail.ru is unavailable: user not found',
  ],
  ['block', '550 spam message rejected. Please visit http://help.mail.ru/notspam-support'],
  ['hard', '550 5.7.13 user account disabled'],
  ['hard', '556 5.1.10 Recipient address has null MX'],
  ['full', '452 mailbox is full'],
  ['soft', '554 Transaction failed'],
  ['soft', '550 5.0.0 Failed'],
  ['soft', '554 5.6.0 message could not be read'],
  ['soft', '550 5.3.0 rejected'],
  ['soft', ''],
]

describe('a bounce', () => {
  test.each(REPLIES)('is %s: %s', (wanted, text) => {
    const [, code, rest = text] = /^(\d{3})[ -](.*)$/s.exec(text) ?? []
    const [, enhanced] = /^#?([245]\.\d{1,3}\.\d{1,3})\s/.exec(rest) ?? []
    // As a reply, where its parts are apart; and as a service tells it, in one text.
    expect(classifyBounce({ text: rest, ...(code && { code: Number(code) }), ...(enhanced && { enhanced }) })).toBe(
      wanted,
    )
    expect(classifyBounce({ text })).toBe(wanted)
  })

  test('of a report has a status alone', () => {
    expect(classifyBounce({ enhanced: '5.1.1' })).toBe('hard')
    expect(classifyBounce({ enhanced: '5.7.999' })).toBe('block')
    expect(classifyBounce({ enhanced: '4.4.1' })).toBe('transient')
    expect(classifyBounce({ enhanced: 'nonsense' })).toBe('soft')
    expect(classifyBounce({ enhanced: '5.0.0', text: 'smtp; 550 5.1.1 user unknown' })).toBe('hard')
    expect(classifyBounce({ code: 550 })).toBe('soft')
    expect(classifyBounce({})).toBe('soft')
  })

  test('takes no address of a host for a code', () => {
    expect(classifyBounce({ code: 550, text: 'connect to 5.1.1.7: user is over quota' })).toBe('full')
    expect(classifyBounce({ code: 550, text: 'rejected by 15.1.1' })).toBe('block')
  })

  test('has a reason of its own', () => {
    expect(Object.values(bounceReasons).every(isBounce)).toBe(true)
    expect(isBounce('address not supported')).toBe(false)
  })

  test('takes little time for any text', async () => {
    const texts = ['mailbox '.repeat(2_000), 'user '.repeat(4_000), 'a'.repeat(20_000), 'exceeds '.repeat(2_000)]
    const usedMs = await cpuTimeMs(() => texts.map((text) => classifyBounce({ code: 550, text })))
    expect(usedMs).toBeLessThan(1_000)
  })
})

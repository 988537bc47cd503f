import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import {
  anotherTo,
  aSentEmail,
  bringMail,
  connectSmtp,
  emailFactsOf,
  notificationTypesOf,
  type SentEmail,
  standingOf,
  suppressionOf,
  UNTOUCHED,
  writeReference,
} from '../../../test/email-back.ts'
import { arf, exchange, exim, global, gmail, outOfOffice, postfix } from '../../../test/fixtures/mail/reports.ts'
import { countEmails } from '../../email/metrics/count.ts'
import { isEmailPaused } from '../../email/pause.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { createLog } from '../../lib/log.ts'
import { sql } from '../../storage/sql.ts'

let app: TestApp
const clock = virtualClock('2030-03-15T09:00:00Z')
beforeAll(async () => {
  app = await testApp({
    clock,
    log: createLog('silent'),
    listensForMail: true,
    publicUrl: 'https://bell.example',
    providers: { email: { route: undefined, helo: 'mail.bell.example', resolver: '127.0.0.1:1' } },
  })
})
afterAll(() => app.close())

const TAKEN = '250 2.0.0 taken'
const NO_MAILBOX = '550 5.1.1 no such mailbox here'
const sent = (more: Partial<Parameters<typeof aSentEmail>[1]> = {}) => aSentEmail(app, { at: clock.now(), ...more })
const bounceAddress = ({ references }: Pick<SentEmail, 'references'>) => `b-${references.report}@bounce.news.example`
const aboutOf = (email: SentEmail) => ({
  to: email.address,
  from: bounceAddress(email),
  messageId: email.messageIdHeader,
  unsubscribeUrl: `https://bell.example/e/u/${email.references.unsubscribe}`,
})
const HARD = { facts: { bounced: 1 }, types: -10, suppressed: 'hard_bounce' }
const COMPLAINED = { facts: { complained: 1 }, types: -2, suppressed: 'complaint' }

describe('a report that a mail could not be delivered', () => {
  test.each([
    ['Postfix', postfix],
    ['Exim', exim],
    ['Exchange', exchange],
    ['Gmail', gmail],
  ])('of %s drops the address, and nothing is sent there again', async (_, write) => {
    const email = await sent()
    expect(await bringMail(app, bounceAddress(email), write(aboutOf(email)))).toBe(TAKEN)
    expect(await standingOf(app, email)).toEqual(HARD)
  })

  test('counts once, however often and however many at once', async () => {
    const email = await sent()
    const report = postfix(aboutOf(email))
    const answers = await Promise.all(Array.from({ length: 20 }, () => bringMail(app, bounceAddress(email), report)))
    expect(answers).toEqual(Array(20).fill(TAKEN))
    expect(await standingOf(app, email)).toEqual(HARD)
  })

  test('finds its email in capitals', async () => {
    const email = await sent()
    expect(await bringMail(app, bounceAddress(email).toUpperCase(), postfix(aboutOf(email)))).toBe(TAKEN)
    expect(await standingOf(app, email)).toEqual(HARD)
  })

  test('keeps what the other server said, for the operator', async () => {
    const email = await sent()
    await bringMail(
      app,
      bounceAddress(email),
      postfix(aboutOf(email), { diagnostic: 'smtp; 550 5.1.1 nobody\u0007 here' }),
    )
    const [row] = await app.db.query<{ detail: string }>(sql`
      select detail from suppressions where app_id = ${app.tenant.id} and address = ${email.address}`)
    expect(row?.detail).toBe('550 5.1.1 nobody here')
  })

  test('because we are blocked is counted, and held against nobody', async () => {
    const email = await sent()
    const report = postfix(aboutOf(email), { status: '5.7.1', diagnostic: 'smtp; 554 5.7.1 blocked, see spamhaus' })
    expect(await bringMail(app, bounceAddress(email), report)).toBe(TAKEN)
    expect(await standingOf(app, email)).toEqual({ ...UNTOUCHED, facts: { bounced: 1 } })
  })

  test('because a mailbox is full suppresses after five times in thirty days, and each mail counts once', async () => {
    const address = 'full@example.com'
    const first = await sent({ address })
    const report = (email: SentEmail) =>
      global({ ...aboutOf(email), to: address }, '552 5.2.2 メールボックス over quota')
    await bringMail(app, bounceAddress(first), report(first))
    await bringMail(app, bounceAddress(first), report(first))
    const others: SentEmail[] = []
    for (let i = 0; i < 4; i++) {
      expect(await suppressionOf(app, first)).toBeUndefined()
      const again = await anotherTo(app, first, clock.now())
      others.push(again)
      await bringMail(app, bounceAddress(again), report(again))
    }
    expect(await suppressionOf(app, first)).toBe('soft_bounces')
    expect(await emailFactsOf(app, others[3] as SentEmail)).toEqual({ bounced: 1 })
    expect(await notificationTypesOf(app, first)).toBeNull()
  })

  test('because a mailbox is full counts when it is told again after it could not be noted', async () => {
    const email = await sent()
    const report = global(aboutOf(email), '552 5.2.2 over quota')
    await app.db.query({ text: 'alter table soft_bounces rename to soft_bounces_gone', values: [] })
    try {
      expect(await bringMail(app, bounceAddress(email), report)).toBe('451 4.3.0 try again later')
    } finally {
      await app.db.query({ text: 'alter table soft_bounces_gone rename to soft_bounces', values: [] })
    }
    for (let n = 0; n < 2; n++) expect(await bringMail(app, bounceAddress(email), report)).toBe(TAKEN)
    expect(await softBouncesOf(email)).toEqual([{ count: 1 }])
    expect(await standingOf(app, email)).toEqual({ ...UNTOUCHED, facts: { bounced: 1 } })
  })

  test('because a mailbox is full counts for each mail, also when they come at once', async () => {
    const first = await sent()
    const emails = [first]
    for (let n = 0; n < 3; n++) emails.push(await anotherTo(app, first, clock.now()))
    const told = [...emails, ...emails].map((email) =>
      bringMail(app, bounceAddress(email), global(aboutOf(email), '552 5.2.2 over quota')),
    )
    expect(await Promise.all(told)).toEqual(Array(8).fill(TAKEN))
    expect(await softBouncesOf(first)).toEqual([{ count: 4 }])
  })

  test.each(['delayed', 'relayed', 'expanded', 'delivered', ''])('says nothing with Action: %s', async (action) => {
    const email = await sent()
    expect(await bringMail(app, bounceAddress(email), postfix(aboutOf(email), { action }))).toBe(TAKEN)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
  })

  test('on a copy says nothing of the one it is a copy of', async () => {
    const email = await sent({ content: { email_bcc: ['Archive@Example.com'] } })
    const report = postfix({ ...aboutOf(email), to: 'archive@example.com' })
    expect(await bringMail(app, bounceAddress(email), report)).toBe(TAKEN)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
  })

  test('that is an answer of a person who is away, or no report at all, says nothing', async () => {
    const email = await sent()
    for (const text of [outOfOffice(aboutOf(email)), 'Subject: hi\n\n550 5.1.1 no such user\n', '', '\n'])
      expect(await bringMail(app, bounceAddress(email), text)).toBe(TAKEN)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
  })

  test('inside the returned message is not believed', async () => {
    const email = await sent()
    const nested = `Subject: hi\nContent-Type: message/rfc822\n\n${postfix(aboutOf(email))}`
    expect(await bringMail(app, bounceAddress(email), nested)).toBe(TAKEN)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
  })
})

const softBouncesOf = ({ address }: SentEmail) =>
  app.db.query(sql`
    select cardinality(times) as count from soft_bounces where app_id = ${app.tenant.id} and address = ${address}`)

describe('a complaint', () => {
  const complain = (email: SentEmail, more: object = {}, to = 'fbl@news.example') =>
    bringMail(app, to, arf(aboutOf(email), more))

  test('unsubscribes and suppresses at once, and counts', async () => {
    const email = await sent()
    expect(await complain(email)).toBe(TAKEN)
    expect(await standingOf(app, email)).toEqual(COMPLAINED)
  })

  test('twenty times at once counts once', async () => {
    const email = await sent()
    expect(await Promise.all(Array.from({ length: 20 }, () => complain(email)))).toEqual(Array(20).fill(TAKEN))
    expect(await standingOf(app, email)).toEqual(COMPLAINED)
  })

  test('is found by the return path alone, by the link to unsubscribe alone, and at abuse@', async () => {
    const [byPath, byLink, atAbuse] = [await sent(), await sent(), await sent()]
    const { unsubscribeUrl, ...withoutLink } = aboutOf(byPath)
    await bringMail(app, 'FBL@news.example', arf(withoutLink))
    await bringMail(app, 'fbl@news.example', arf({ ...aboutOf(byLink), from: 'x@news.example' }, { isRedacted: true }))
    await complain(atAbuse, {}, 'abuse@bounce.news.example')
    for (const email of [byPath, byLink, atAbuse]) expect(await standingOf(app, email)).toEqual(COMPLAINED)
  })

  test('that is none, or only asks to be unsubscribed, does no more than that', async () => {
    const [notSpam, dmarc, out] = [await sent(), await sent(), await sent()]
    await complain(notSpam, { type: 'not-spam' })
    await complain(dmarc, { type: 'auth-failure' })
    await complain(out, { type: 'opt-out' })
    for (const email of [notSpam, dmarc]) expect(await standingOf(app, email)).toEqual(UNTOUCHED)
    expect(await standingOf(app, out)).toEqual({ facts: { unsubscribed: 1 }, types: -2, suppressed: undefined })
  })

  test('too many pause the email of the app', async () => {
    const domain = 'news.example'
    await app.db.query(sql`
      insert into email_domains (app_id, domain, state, return_path_host, dkim_keys, created_at, updated_at)
      values (${app.tenant.id}, ${domain}, 'active', 'bounce.news.example', '[]', ${clock.now()}, ${clock.now()})`)
    const before = await complaintsSoFar()
    // So many were delivered that one more complaint is just 0.3 %, and the next one is above.
    const delivered = Math.ceil((before + 1) / 0.003)
    await countEmails(app.db, app.tenant.id, 0, [{ domain, provider: 'gmail', at: clock.now(), delivered }])
    await complain(await sent())
    expect(await isEmailPaused(app.db, app.tenant.id)).toBe(false)
    for (let n = 0; n < 10; n++) await complain(await sent())
    expect(await isEmailPaused(app.db, app.tenant.id)).toBe(true)
  })

  async function complaintsSoFar(): Promise<number> {
    const [row] = await app.db.query<{ n: number }>(sql`
      select coalesce(sum(complained), 0)::integer as n from email_rollups where app_id = ${app.tenant.id} and unit = 'day'`)
    return row?.n ?? 0
  }
})

describe('mail to unsubscribe', () => {
  const REQUEST = 'From: somebody@example.com\nSubject: unsubscribe\n\n'
  test('does so', async () => {
    const email = await sent()
    const to = `u-${email.references.unsubscribe}@bounce.news.example`
    expect(await bringMail(app, to, REQUEST, 'somebody@example.com')).toBe(TAKEN)
    expect(await bringMail(app, to, REQUEST, 'somebody@example.com')).toBe(TAKEN)
    expect(await standingOf(app, email)).toEqual({ facts: { unsubscribed: 1 }, types: -2, suppressed: undefined })
  })

  test('that a machine answered, or that is a report, does not', async () => {
    const email = await sent()
    const to = `u-${email.references.unsubscribe}@bounce.news.example`
    for (const text of [outOfOffice(aboutOf(email)), postfix(aboutOf(email))])
      expect(await bringMail(app, to, text)).toBe(TAKEN)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
  })
})

describe('without a signature', () => {
  test('nothing touches anybody: addresses', async () => {
    const email = await sent()
    const { report: reference } = email.references
    const changed = reference.replace(/.$/, (letter) => (letter === 'a' ? 'i' : 'a'))
    const of = (subscriptionId: string) =>
      writeReference(
        {
          appId: email.appId,
          expandAt: clock.now(),
          messageId: email.message.id,
          subscriptionId,
          runId: newId(),
        },
        'report',
      )
    for (const local of [
      `b-${changed}`,
      `b-${reference.slice(1)}`,
      `b-${reference}a`,
      `b+${reference}`,
      `b${reference}`,
      reference,
      `c-${reference}`,
      // Signed for another purpose.
      `u-${reference}`,
      `b-${email.references.unsubscribe}`,
      `u-${email.references.open}`,
      `b-${email.messageIdHeader.slice(1, 14)}`,
      `u-${email.subscriptionId}`,
      'postmaster',
      email.address,
      '',
    ])
      expect([local, await bringMail(app, `${local}@bounce.news.example`, postfix(aboutOf(email)))]).toEqual([
        local,
        NO_MAILBOX,
      ])
    // Rightly signed, and of no email that there is: taken, and nothing comes of it.
    expect(await bringMail(app, `b-${of(email.subscriptionId)}@x`, postfix(aboutOf(email)))).toBe(TAKEN)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
  })

  test('nothing touches anybody: complaints that name the recipient, the message, or a changed reference', async () => {
    const email = await sent()
    const { unsubscribe: reference } = email.references
    const changed = reference.replace(/^./, (letter) => (letter === 'a' ? 'b' : 'a'))
    const stranger = { to: email.address, messageId: email.messageIdHeader, from: 'x@news.example' }
    for (const about of [
      stranger,
      { ...stranger, from: `b-${changed}@news.example` },
      { ...stranger, unsubscribeUrl: `https://bell.example/e/u/${changed}` },
      { ...stranger, unsubscribeUrl: `https://bell.example/e/u/${reference}a` },
      { ...stranger, unsubscribeUrl: `https://bell.example/e/u/${email.subscriptionId}` },
      { ...stranger, unsubscribeUrl: `https://bell.example/e/u/${email.references.open}` },
      { ...stranger, from: `b-${email.references.click}@news.example` },
    ])
      expect(await bringMail(app, 'fbl@news.example', arf(about))).toBe(TAKEN)
    const inBody = `Content-Type: multipart/report; boundary=x\n\n--x\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\n\n--x\nContent-Type: text/plain\n\nb-${reference}@news.example\n\n--x--\n`
    expect(await bringMail(app, 'fbl@news.example', inBody)).toBe(TAKEN)
    expect(await standingOf(app, email)).toEqual(UNTOUCHED)
  })
})

test('what cannot be written down is asked for again', async () => {
  const email = await sent()
  const alone = await testApp({ beside: app, clock, listensForMail: true })
  await app.db.query({ text: 'alter table suppressions rename to suppressions_gone', values: [] })
  try {
    const answer = await bringMail(alone, bounceAddress(email), postfix(aboutOf(email)))
    expect(answer).toBe('451 4.3.0 try again later')
  } finally {
    await app.db.query({ text: 'alter table suppressions_gone rename to suppressions', values: [] })
  }
  expect(await bringMail(alone, bounceAddress(email), postfix(aboutOf(email)))).toBe(TAKEN)
  expect(await standingOf(app, email)).toEqual(HARD)
  await alone.close()
  await expect(connectSmtp(alone.mailPort as number)).rejects.toThrow('ECONNREFUSED')
})

test('the server for it says the name that return paths lead to', async () => {
  const smtp = await connectSmtp(app.mailPort as number)
  const [greeting] = await smtp.say('EHLO mx.example.net')
  smtp.close()
  expect(greeting).toMatch(/^250-mail\.bell\.example\r\n/)
})

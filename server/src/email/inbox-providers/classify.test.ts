import { describe, expect, test } from 'vitest'
import { classify, domainOf } from './classify.ts'
import listed from './providers.json' with { type: 'json' }
import { inboxProviders, listedProviders, readDomain, readProviders } from './providers.ts'

describe('a domain', () => {
  test.each([
    ['gmail.com', 'gmail'],
    ['GoogleMail.COM', 'gmail'],
    ['gmail.com.', 'gmail'],
    ['google.com', 'googlers'],
    ['hotmail.co.uk', 'outlook_eu'],
    ['live.com', 'outlook_us'],
    ['contoso.onmicrosoft.com', 'outlook_365'],
    ['onmicrosoft.com', 'outlook_365'],
    ['notonmicrosoft.com', 'other'],
    ['a.b.wanadoo.fr', 'french'],
    ['tampabay.rr.com', 'other_us'],
    ['yahoo.co.jp', 'japanese'],
    ['yahoo.ca', 'canadian'],
    ['free.fr', 'free_fr'],
    ['inbox.lv', 'inbox_lv'],
    ['juno.com', 'united_online'],
  ])('%s is known by its name: %s', (domain, provider) => {
    expect(classify(domain)).toBe(provider)
    // The name says more than hosts do.
    expect(classify(domain, ['mx.emailsrvr.com'])).toBe(provider === 'other' ? 'rackspace' : provider)
  })

  test.each([
    ['firma.de', 'german'],
    ['shop.co.uk', 'uk'],
    ['почта.рф', 'russian'],
    ['例え.jp', 'japanese'],
    ['公司.中国', 'chinese'],
    ['school.edu', 'other_us'],
    ['winkel.nl', 'other_eu'],
    ['shop.example', 'other'],
    ['localhost', 'other'],
    ['', 'other'],
    ['no domain', 'other'],
    ['a..b', 'other'],
    ['[127.0.0.1]', 'other'],
  ])('%s without mail hosts goes by its country: %s', (domain, provider) => {
    expect(classify(domain)).toBe(provider)
  })
})

describe('mail hosts', () => {
  test.each([
    [['ASPMX.L.GOOGLE.COM.'], 'google_workspace'],
    [['gmail-smtp-in.l.google.com'], 'gmail'],
    [['firma-de.mail.protection.outlook.com'], 'outlook_365'],
    [['eur.olc.protection.outlook.com'], 'outlook_eu'],
    [['nam.olc.protection.outlook.com'], 'outlook_us'],
    [['mx-eu.mail.am0.yahoodns.net'], 'yahoo_eu'],
    [['mta5.am0.yahoodns.net'], 'yahoo_us'],
    [['mail.protonmail.ch', 'mailsec.protonmail.ch'], 'proton'],
    [['mx01.mail.icloud.com'], 'apple'],
    [['mail.firma.de', 'mx1.emailsrvr.com'], 'rackspace'],
    [['mail.firma.de'], 'german'],
    [[], 'german'],
    [['notprotonmail.ch'], 'german'],
  ])('%j before the country: %s', (mx, provider) => {
    expect(classify('firma.de', mx)).toBe(provider)
  })

  test('that are gateways decide nothing, but for those whose region is known', () => {
    expect(classify('firma.de', ['mx1.pphosted.com', 'mx2.pphosted.com'])).toBe('german')
    expect(classify('firma.de', ['mx1.pphosted.com', 'aspmx.l.google.com'])).toBe('google_workspace')
    expect(classify('firma.de', ['eu-smtp-inbound-1.mimecast.com'])).toBe('other_eu')
    expect(classify('firma.de', ['za-smtp-inbound-1.mimecast.com'])).toBe('german')
  })
})

test('the domain of an address is what is behind the last @', () => {
  expect(domainOf('"a@b"@Gmail.com')).toBe('gmail.com')
  expect(domainOf('a@bücher.de')).toBe('xn--bcher-kva.de')
  expect(domainOf('a@')).toBeUndefined()
  expect(readDomain('x'.repeat(64))).toBeUndefined()
})

describe('the list', () => {
  test('has all providers of the interface, and each name that it has is classified as it says', () => {
    expect(Object.keys(listed.providers).sort()).toEqual(inboxProviders.toSorted())
    for (const [provider, { domains }] of Object.entries(listed.providers))
      for (const domain of domains) expect([domain, classify(domain)]).toEqual([domain, provider])
    for (const [provider, { mx_suffixes }] of Object.entries(listed.providers))
      for (const host of mx_suffixes) expect([host, classify('x.example', [`mx.${host}`])]).toEqual([host, provider])
  })

  const withNames = (providers: object) => readProviders({ providers }, listedProviders)

  test('takes names of the operator on top', () => {
    const list = withNames({
      rackspace: { domains: ['GMAIL.com'], domain_suffixes: ['firma.de'], mx_suffixes: ['pphosted.com'] },
    })
    expect(classify('gmail.com', [], list)).toBe('rackspace')
    expect(classify('mail.firma.de', [], list)).toBe('rackspace')
    expect(classify('laden.de', ['mx.pphosted.com'], list)).toBe('rackspace')
    expect(classify('googlemail.com', [], list)).toBe('gmail')
    expect(classify('laden.de', [], list)).toBe('german')
  })

  test.each<[unknown, string]>([
    [5, '"providers" must be an object'],
    [{ hotmail: {} }, '"hotmail" is none of apple, att, '],
    [{ gmail: [] }, '"gmail" must be an object'],
    [{ gmail: { names: [] } }, '"gmail" has "names", which is none of domains, domain_suffixes, mx_suffixes'],
    [{ gmail: { domains: 'x.y' } }, '"domains" of "gmail" must be a list'],
    [{ gmail: { domains: ['a b'] } }, '"domains" of "gmail" has "a b", which is no domain'],
    [{ gmail: { domains: [null] } }, '"domains" of "gmail" has null, which is no domain'],
    [
      { gmail: { mx_suffixes: ['x.y'] }, apple: { mx_suffixes: ['X.y.'] } },
      '"x.y" stands in "mx_suffixes" of "gmail" and of "apple"',
    ],
  ])('does not take %j', (providers, error) => {
    expect(() => withNames(providers as object)).toThrow(error)
  })
})

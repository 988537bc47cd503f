import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fillPieces, splitAtPlaceholders } from '../../lib/placeholders.ts'
import { scanHtml } from './scan-html.ts'
import { emailUrls } from './urls.ts'
import { writeEmailHtml } from './write-html.ts'

const urls = emailUrls('https://t.example')
const write = (html: string, more: { sign?: undefined; hasPixel?: boolean; preheader?: string } = {}) =>
  fillPieces(
    splitAtPlaceholders(
      writeEmailHtml(html, { urls, sign: () => 'SIG', hasPixel: true, preheader: undefined, ...more }),
    ),
    (purpose) => `REF-${purpose}`,
  )
const PIXEL =
  '<img src="https://t.example/e/o/REF-open.gif" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0">'
const hrefsIn = (html: string) => scanHtml(html).links.map(({ href }) => href)

test('a link leads over us to where it led', () => {
  expect(write('<p>Hi <a class=x href="https://shop.example/?a=1&amp;b=2#top">shop</a></p>')).toBe(
    `<p>Hi <a class=x href="https://t.example/e/c/REF-click/SIG?u=${encodeURIComponent('https://shop.example/?a=1&b=2#top')}">shop</a></p>${PIXEL}`,
  )
})

test.each([
  [`<a href='https://a.example/'>`, 'https://a.example/'],
  ['<a href=https://a.example/x?y>', 'https://a.example/x?y'],
  ['<A\n HREF = "https://a.example/">', 'https://a.example/'],
  ['<area shape=rect href="https://a.example/">', 'https://a.example/'],
  ['<a title="a > b" href="https://a.example/">', 'https://a.example/'],
  ['<a/href="https://a.example/"/>', 'https://a.example/'],
  ['<a href="  https://a.example/\n\tb ">', 'https://a.example/b'],
  ['<a href="https://a.example/?copy=1&copy=2&#38;x&#x26;y">', 'https://a.example/?copy=1&copy=2&x&y'],
  ['<a href="https://a.example/" href="https://b.example/">', 'https://a.example/'],
  ['<a href="https://ü.example/ö">', 'https://xn--tda.example/%C3%B6'],
  ['< b <a href="https://a.example/">', 'https://a.example/'],
  ['<![if !mso]><a href="https://a.example/"><![endif]>', 'https://a.example/'],
  ['<style>a{}</style><a href="https://a.example/">', 'https://a.example/'],
  ['<!----><a href="https://a.example/">', 'https://a.example/'],
  ['<!--> <a href="https://a.example/"> -->', 'https://a.example/'],
])('%j is followed', (html, target) => {
  expect(write(html)).toContain(`/e/c/REF-click/SIG?u=${encodeURIComponent(target)}"`)
})

test.each([
  '<a href="mailto:ann@example.com">',
  '<a href="tel:+15551234">',
  '<a href="#top">',
  '<a href="/relative">',
  '<a href="//host.example/">',
  '<a href="javascript:alert(1)">',
  '<a href="http://">',
  '<a href="https://a.example/" data-no-track>',
  '<a data-no-track="" href="https://a.example/">',
  '<a data-href="https://a.example/">',
  '<a href>',
  '<a href="">',
  '<abbr href="https://a.example/">',
  '<link href="https://a.example/">',
  '<base href="https://a.example/">',
  '<img src="https://a.example/">',
  '</a href="https://a.example/">',
  '<!-- <a href="https://a.example/"> -->',
  '<!--[if mso]><a href="https://a.example/"><![endif]-->',
  '<style>/* <a href="https://a.example/"> */</style>',
  '<script>"<a href=https://a.example/>"</script >',
  '<title><a href="https://a.example/"></title>',
  '<textarea><a href="https://a.example/"></textarea>',
  '<a href="https://a.example/?x=&unheardof;">',
  '<a href="https://a.example/',
  'href="https://a.example/"',
  '< a href="https://a.example/">',
])('%j stays as it is', (html) => {
  expect(write(html)).toBe(html + PIXEL)
})

test('a backslash in an address is written as others are, so that who follows the link gets there', () => {
  expect(write('<a href="https://a.example/b\\c?d=\\e#\\f">x</a>')).toContain(
    `u=${encodeURIComponent('https://a.example/b/c?d=%5Ce#%5Cf')}"`,
  )
})

test('no link is followed where the message says so; the rest is done all the same', () => {
  const html = '<a href="https://a.example/">a</a> <a href="[unsubscribe_url]">u</a>'
  expect(write(html, { sign: undefined })).toBe(
    `<a href="https://a.example/">a</a> <a href="https://t.example/e/u/REF-unsubscribe">u</a>${PIXEL}`,
  )
})

test('no picture is put in where the message says so; the rest is done all the same', () => {
  expect(write('<p><a href="https://a.example/">a</a></p>', { hasPixel: false, preheader: 'b' })).toMatch(
    /^<div [^>]*>b<\/div><p><a href="https:\/\/t\.example\/e\/c\/[^>]*>a<\/a><\/p>$/,
  )
})

test('placeholders are filled wherever they stand, and are no links to be followed', () => {
  expect(
    write(
      '<a href="[unsubscribe_url]">x</a><a href="%5Bpreferences_url%5D">y</a><!--[if mso]>[View_Message_In_Browser_URL]<![endif]-->[other]',
    ),
  ).toBe(
    `<a href="https://t.example/e/u/REF-unsubscribe">x</a><a href="https://t.example/e/p/REF-preferences">y</a><!--[if mso]>https://t.example/e/v/REF-view<![endif]-->[other]${PIXEL}`,
  )
  const inQuery = '<a href="https://a.example/?next=[unsubscribe_url]">x</a>'
  expect(write(inQuery)).toBe(`<a href="https://a.example/?next=https://t.example/e/u/REF-unsubscribe">x</a>${PIXEL}`)
})

test('the pixel stands at the end of the body, the preheader at its top, and reads as it was written', () => {
  const html = '<!doctype html><html><head><title></body></title></head><body class=a><p>Hi</p></body></html>'
  expect(write(html, { preheader: 'News <b> & "more"' })).toBe(
    `<!doctype html><html><head><title></body></title></head><body class=a>${hidden('News &lt;b&gt; &amp; &quot;more&quot;')}<p>Hi</p>${PIXEL}</body></html>`,
  )
  expect(write('<p>Hi', { preheader: 'News' })).toBe(`${hidden('News')}<p>Hi${PIXEL}`)
  expect(write('<!DOCTYPE html><p>Hi', { preheader: 'News' })).toBe(`<!DOCTYPE html>${hidden('News')}<p>Hi${PIXEL}`)
  expect(write('<html><head></head><p>Hi', { preheader: 'News' })).toBe(
    `<html><head></head>${hidden('News')}<p>Hi${PIXEL}`,
  )
})
const hidden = (text: string) =>
  `<div style="display:none;max-height:0;max-width:0;overflow:hidden;opacity:0;mso-hide:all">${text}</div>`

/** Pieces of HTML, each with the links in it that a reader could follow. */
const fragments = fc
  .oneof(
    fc.constantFrom(
      '<p>',
      '</p>',
      'text & more',
      '<br/>',
      '<img src="https://a.example/x.png">',
      '<td align=left >',
      '1 < 2',
      '\n',
    ),
    fc.constantFrom('<!-- <a href="https://no.example/"> -->', '<style>a>b{}</style>', '<a name="x">', '<a href="#x">'),
    fc.constantFrom(
      '<title>x</title>',
      '<?xml?>',
      '<![endif]>',
      '</ bogus>',
      '<a data-no-track href="https://no.example/">',
    ),
  )
  .map((html) => ({ html, links: [] as string[] }))
const links = fc.tuple(fc.webUrl({ withQueryParameters: true }), fc.constantFrom('"', "'")).map(([url, quote]) => {
  const href = new URL(url).href.replaceAll("'", '%27')
  return { html: `<a style="x" href=${quote}${href.replaceAll('&', '&amp;')}${quote}>`, links: [href] }
})

test('of any mixture, exactly the links are found, and nothing beside them changes', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fragments, links), { maxLength: 30 }), (parts) => {
      const html = parts.map((part) => part.html).join('')
      const expected = parts.flatMap((part) => part.links)
      expect(hrefsIn(html).filter((href) => href !== '#x')).toEqual(expected)
      // Each of our addresses, put back to what stood there, gives the original.
      const { links: places } = scanHtml(html)
      const values = places.filter(({ href }) => href !== '#x').map(({ from, to }) => html.slice(from, to))
      const back = write(html)
        .replace(PIXEL, '')
        .replaceAll(/"https:\/\/t\.example\/e\/c\/REF-click\/SIG\?u=([^"]*)"/g, () => values.shift() as string)
      expect(back).toBe(html)
    }),
  )
})

test('whatever the text is, only values of href change, and it takes no longer than it is long', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'<>!-/a href="\'=https://x.y '), maxLength: 200 }), (html) => {
      const { links: places, top, end } = scanHtml(html)
      expect(top).toBeLessThanOrEqual(end)
      for (const { from } of places) expect(html.slice(0, from)).toMatch(/href\s*=\s*$/i)
      expect(write(html).length).toBeGreaterThanOrEqual(PIXEL.length)
    }),
  )
  for (const part of ['<!---->', '<a ', '<!--', '<style>', '<a href="', '</', '<a b=c '])
    expect(write(part.repeat(70_000)).length).toBeGreaterThan(70_000)
})

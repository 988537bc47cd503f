// The pages of the server as a real browser shows them.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../app.ts'
import { chromium, startChromium } from './chromium.ts'

const isMissing = chromium === undefined && process.env.CI === undefined

describe('pages in Chromium', () => {
  let app: TestApp
  let browser: Awaited<ReturnType<typeof startChromium>>
  beforeEach(({ skip }) => {
    if (isMissing) skip('needs Chromium on this machine')
  })
  beforeAll(async () => {
    if (isMissing) return
    browser = await startChromium({ reachesPush: false })
    app = await testApp()
  })
  afterAll(async () => {
    await browser?.close()
    await app?.close()
  })

  const origin = () => app.url.replace('127.0.0.1', 'localhost')
  const GUIDES = ['try-it', 'api', 'messages', 'settings', 'command-line', 'operations', 'journeys', 'licences']

  test.each(['/', '/docs', '/demo', ...GUIDES.map((slug) => `/docs/${slug}`)])('%s fits a phone', async (path) => {
    await browser.resize(400)
    await browser.go(origin() + path)
    expect(
      await browser.run(`(() => {
        const { clientWidth, scrollWidth } = document.documentElement
        const isWide = (it) => it.getBoundingClientRect().right > clientWidth + 0.5
        const wide = [...document.querySelectorAll('body *:not(pre *)')].filter(isWide).map((it) => it.outerHTML.slice(0, 200))
        return { overflow: scrollWidth - clientWidth, wide: wide.slice(0, 3) }
      })()`),
    ).toEqual({ overflow: 0, wide: [] })
  })

  test('the contents are folded away on a phone until they are asked for', async () => {
    await browser.resize(400)
    await browser.go(`${origin()}/docs`)
    const isShown = () => browser.run(`document.querySelector('nav details').checkVisibility()`)
    expect(await isShown()).toBe(false)
    await browser.run(`document.getElementById('menu').click()`)
    expect(await isShown()).toBe(true)
  })

  test('a search leaves no group that is empty, and finds guides by their chapters', async () => {
    await browser.resize(1400)
    await browser.go(`${origin()}/docs`)
    const search = (words: string) =>
      browser.run(`(() => {
        const box = document.querySelector('nav input')
        box.value = ${JSON.stringify(words)}
        box.dispatchEvent(new Event('input'))
        const seen = (it) => it.checkVisibility()
        return {
          titles: [...document.querySelectorAll('nav summary, main h2')].filter(seen).map((it) => it.firstChild.textContent),
          operations: [...document.querySelectorAll('section.operation')].filter(seen).map((it) => it.id),
          guides: [...document.querySelectorAll('nav a[href^="/docs/"]')].filter(seen).map((it) => it.textContent),
          isNoneShown: seen(document.getElementById('none')),
        }
      })()`)
    expect(await search('startLiveActivity')).toEqual({
      titles: ['Live activities', 'Live activities'],
      operations: ['startLiveActivity'],
      guides: [],
      isNoneShown: false,
    })
    expect((await search('restoring a backup')).guides).toEqual(['Running Carillon in production'])
    expect(await search('no such words')).toEqual({ titles: [], operations: [], guides: [], isNoneShown: true })
    const all = await search('')
    expect(all.operations.length).toBeGreaterThan(150)
  })

  test('an example is shown in one language at a time, the one that was chosen', async () => {
    await browser.go(`${origin()}/docs`)
    const shown = () =>
      browser.run(`[...document.querySelectorAll('#createNotification pre')].filter((it) => it.checkVisibility())
        .map((it) => it.textContent.split(' ')[0])`)
    expect(await shown()).toEqual(['curl'])
    await browser.run(`document.querySelector('[data-language=node]').click()`)
    expect(await shown()).toEqual(['const'])
    await browser.go(`${origin()}/docs`)
    expect(await shown()).toEqual(['const'])
  })

  test('the demo says within ten seconds that the push service cannot be reached, and what to do', async () => {
    await browser.go(`${origin()}/demo?app_id=${app.tenant.id}`)
    const found = await browser.run(`(async () => {
      const element = (id) => document.getElementById(id)
      const until = async (done) => {
        const begun = performance.now()
        while (!done()) await new Promise((resolve) => setTimeout(resolve, 50))
        return performance.now() - begun
      }
      await until(() => !element('subscription').hidden)
      await until(() => !element('subscribe').disabled)
      element('subscribe').click()
      const ms = await until(() => !element('problem').hidden)
      return { ms, problem: element('problem').textContent, isHelpShown: !element('unreachable').hidden }
    })()`)
    expect(found).toEqual({
      ms: expect.any(Number),
      problem: expect.stringContaining('push service of this browser'),
      isHelpShown: true,
    })
    expect(found.ms).toBeLessThan(10_000)
  })
})

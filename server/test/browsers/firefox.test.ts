import { afterEach, describe, expect, test } from 'vitest'
import { firefox, startFirefox } from './firefox.ts'
import { describeBrowser } from './suite.ts'
import { until } from './until.ts'

describeBrowser('Firefox', firefox, startFirefox, (suite) => {
  const { browser, siteUrl, visit, show, told, subscription, clickCounted } = suite

  describe('a notification that is pressed', () => {
    afterEach(() => browser().closeOtherTabs())

    test('opens the address of its message', async () => {
      await visit()
      const url = `${siteUrl()}bells`
      const { id } = await show({ title: 'Open', url })
      await browser().press('Open')
      await clickCounted(id)
      expect(await browser().tabs()).toEqual([siteUrl(), url])
      expect((await told(id)).at(-1)).toMatchObject({ type: 'clicked', url })
    })

    test('leads to the page that shows the address already, or to any where there is no address', async () => {
      await visit('offers')
      for (const url of [`${siteUrl()}offers`, undefined]) {
        const { id } = await show({ title: 'Stay', url })
        await browser().press('Stay')
        await clickCounted(id)
        expect(await browser().tabs()).toEqual([`${siteUrl()}offers`])
      }
    })

    test('opens nothing where the address says so', async () => {
      await visit()
      const { id } = await show({ title: 'Do not open', url: `${siteUrl()}bells?_osp=do_not_open` })
      await browser().press('Do not open')
      await clickCounted(id)
      expect(await browser().tabs()).toEqual([siteUrl()])
    })

    test('is told to the page that comes after it, where none was open', async () => {
      await visit()
      const { id } = await show({ title: 'Later' })
      await browser().go('about:blank')
      await browser().press('Later')
      await clickCounted(id)
      expect(await browser().tabs()).toEqual(['about:blank', siteUrl()])
      await visit()
      expect(await told(id)).toMatchObject([{ type: 'clicked', title: 'Later' }])
    })
  })

  test('a subscription that the push service has lost is replaced while nobody looks', async () => {
    await visit()
    const before = await subscription()
    browser().forgetSubscriptions()
    const after = await until(async () => {
      const now = await subscription()
      return now.token === before.token ? undefined : now
    })
    expect(after).toMatchObject({ id: before.id, enabled: true })
    await show({ title: 'Still there' })
  })
})

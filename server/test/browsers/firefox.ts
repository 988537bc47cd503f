// Firefox without a window, controlled by WebDriver BiDi, which it speaks by itself.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../src/lib/clock.ts'
import { startAutopush } from './autopush.ts'
import type { TouchableBrowser } from './browser.ts'
import { connect, findProgram, launch } from './remote.ts'
import { until } from './until.ts'

export const firefox = findProgram('firefox-esr', 'firefox')

export async function startFirefox(): Promise<TouchableBrowser> {
  const service = await startAutopush(systemClock())
  const settings = {
    'dom.push.serverURL': service.url,
    'dom.push.testing.allowInsecureServerURL': true,
    // Remote control switches it off.
    'dom.push.connection.enabled': true,
    // After which it connects again, in milliseconds.
    'dom.push.retryBaseInterval': 50,
    'permissions.default.desktop-notification': 1,
    // Without a desktop there is nobody who would show a notification of the system.
    'alerts.useSystemBackend': false,
  }
  const { address, stop } = await launch(firefox as string, /WebDriver BiDi listening on (ws:\S+)/, async (profile) => {
    const lines = Object.entries(settings).map(([name, it]) => `user_pref("${name}", ${JSON.stringify(it)});`)
    await writeFile(join(profile, 'user.js'), lines.join('\n'))
    // System access reaches its own windows, of which notifications are some.
    const control = ['--remote-debugging-port', '0', '--remote-allow-system-access']
    return ['--headless', '--no-remote', '--profile', profile, ...control]
  })
  const remote = await connect(`${address}/session`)
  await remote.send('session.new', { capabilities: {} })
  const contexts = async (scope = 'content'): Promise<{ context: string; url: string }[]> =>
    (await remote.send('browsingContext.getTree', { 'moz:scope': scope })).contexts
  const [tab] = await contexts()
  const ownTab = tab?.context as string

  async function evaluate(context: string, expression: string) {
    const { type, result, exceptionDetails } = await remote.send('script.evaluate', {
      expression: `(async () => JSON.stringify((await (${expression})) ?? null))()`,
      target: { context },
      awaitPromise: true,
    })
    if (type === 'exception') throw new Error(exceptionDetails.text)
    return JSON.parse(result.value)
  }

  return {
    type: 'FirefoxPush',
    route: service.route,
    async go(url) {
      await remote.send('browsingContext.navigate', { context: ownTab, url, wait: 'complete' })
    },
    run: (expression) => evaluate(ownTab, expression),
    press: (title) =>
      until(async () => {
        for (const { context, url } of await contexts('chrome')) {
          if (!url.endsWith('/alert.xhtml')) continue
          const isMeant = `document.documentElement.outerHTML.includes(${JSON.stringify(title)})`
          if (await evaluate(context, `${isMeant} && (onAlertClick(), true)`)) return true
        }
        return undefined
      }),
    tabs: async () => (await contexts()).map(({ url }) => url),
    async closeOtherTabs() {
      for (const { context } of await contexts())
        if (context !== ownTab) await remote.send('browsingContext.close', { context })
    },
    wasReadable: () => service.acks.map((code) => code === 100),
    corruptNext: service.corruptNext,
    forgetSubscriptions: service.forgetSubscriptions,
    async close() {
      remote.close()
      await stop()
      await service.close()
    },
  }
}

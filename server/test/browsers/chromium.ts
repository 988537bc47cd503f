// Chromium without a window, controlled by its DevTools protocol.

import { systemClock } from '../../src/lib/clock.ts'
import type { TestBrowser } from './browser.ts'
import { startGcm } from './gcm.ts'
import { connect, findProgram, launch } from './remote.ts'

export const chromium = findProgram('chromium', 'chromium-browser')

/** With a window that can be made narrow; its push service may be one that nobody reaches. */
export async function startChromium({
  reachesPush = true,
} = {}): Promise<TestBrowser & { resize(width: number): Promise<void> }> {
  const service = await startGcm(systemClock())
  const { address, stop } = await launch(chromium as string, /DevTools listening on (ws:\S+)/, (profile) => [
    '--headless=new',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--no-first-run',
    // Nothing on the internet is needed, and waiting for it is not what is tested.
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1',
    `--user-data-dir=${profile}`,
    '--remote-debugging-port=0',
    ...(reachesPush ? service.switches : []),
    'about:blank',
  ])
  const remote = await connect(address)
  const { targetInfos } = await remote.send('Target.getTargets')
  const { targetId } = targetInfos.find(({ type }: { type: string }) => type === 'page')
  const { sessionId } = await remote.send('Target.attachToTarget', { targetId, flatten: true })
  const inPage = (method: string, params?: object) => remote.send(method, params, sessionId)
  await inPage('Page.enable')

  return {
    type: 'ChromePush',
    route: service.route,
    async go(url) {
      await remote.send('Browser.grantPermissions', { origin: new URL(url).origin, permissions: ['notifications'] })
      const loaded = remote.next('Page.loadEventFired')
      await inPage('Page.navigate', { url })
      await loaded
    },
    async run(expression) {
      const { result, exceptionDetails } = await inPage('Runtime.evaluate', {
        expression: `(async () => JSON.stringify((await (${expression})) ?? null))()`,
        awaitPromise: true,
      })
      if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
      return JSON.parse(result.value)
    },
    async resize(width) {
      await inPage('Emulation.setDeviceMetricsOverride', { width, height: 800, deviceScaleFactor: 1, mobile: false })
    },
    corruptNext: service.corruptNext,
    async close() {
      remote.close()
      await stop()
      await service.close()
    },
  }
}

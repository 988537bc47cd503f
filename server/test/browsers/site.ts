// A website of a customer, on an origin of its own: a page with the SDK, and the one line of its service worker. The second
// line of the worker is ours: nobody is there to click, so a page can ask it to act as if somebody had.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Site = { url: string; close(): Promise<void> }

export async function startSite(carillonUrl: string): Promise<Site> {
  const page = `<!doctype html><title>A shop</title><script src="${carillonUrl}/sdk/carillon.js"></script>`
  const worker = `
importScripts('${carillonUrl}/sdk/carillon-worker.js')
self.addEventListener('message', async ({ data: { clickOn, action } }) => {
  if (clickOn === undefined) return
  const shown = await self.registration.getNotifications()
  const notification = shown.find(({ data }) => data.carillon.id === clickOn)
  self.dispatchEvent(new NotificationEvent('notificationclick', { notification, action }))
})`
  const server = createServer((request, response) => {
    const isWorker = request.url === '/carillon-worker.js'
    response.setHeader('content-type', isWorker ? 'text/javascript' : 'text/html')
    response.end(isWorker ? worker : page)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    // Only by this name is plain HTTP a secure context on every browser.
    url: `http://localhost:${(server.address() as AddressInfo).port}/`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

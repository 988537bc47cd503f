// What the tests ask of a browser, whoever made it.

import type { ProviderRoute } from '../../src/channels/channel.ts'

export type TestBrowser = {
  /** Load a page of this address in its one tab. Its site may show notifications. */
  go(url: string): Promise<void>
  /** The value of an expression in the page, awaited; it must be JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the page answers; the assertions are its type
  run(expression: string): Promise<any>
  /** How our sender reaches the push service that this browser subscribes with. */
  route: ProviderRoute
  /** The type of the subscriptions it makes. */
  type: string
  /** What it said of the pushes that it took, where it says so: whether it could read them. */
  wasReadable?(): boolean[]
  /** The push service hands on the next push with a flipped bit. */
  corruptNext(): void
  close(): Promise<void>
}

/** One in which a test can do what otherwise only a person can: press a notification, and see what opens. */
export type TouchableBrowser = TestBrowser & {
  press(title: string): Promise<unknown>
  /** The addresses of its tabs. */
  tabs(): Promise<string[]>
  closeOtherTabs(): Promise<void>
  /** Its push service has lost them, and says so. */
  forgetSubscriptions(): void
}

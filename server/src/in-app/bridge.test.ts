// The script of a page, run as a phone would, against as little of a browser as it asks for.

import { createContext, runInContext } from 'node:vm'
import { expect, test } from 'vitest'
import { bridgeScript, type DisplayLocation } from './bridge.ts'

type Listener = (event: object) => void
type Made = { [name: string]: unknown; nodeType: number }

const element = (attributes: Record<string, string> = {}, ...children: Made[]): Made => {
  const list = Object.entries(attributes).map(([name, value]) => ({ name, value }))
  const node: Made = {
    nodeType: 1,
    nodeName: 'P',
    attributes: list,
    style: {},
    firstChild: children[0],
    getAttribute: (name: string) => list.find((it) => it.name === name)?.value ?? null,
  }
  children.forEach((child, i) => {
    Object.assign(child, { nextSibling: children[i + 1], parentNode: node })
  })
  return node
}
const text = (nodeValue: string): Made => ({ nodeType: 3, nodeValue })

/** What comes out is what the SDK around the page hears. */
function open(root: Made, { location = 'center' as DisplayLocation, pages = [] as Made[], isIos = false } = {}) {
  const posted: { type: string; body?: object }[] = []
  const listeners: Record<string, Listener> = {}
  const host = { postMessage: (message: string) => posted.push(JSON.parse(message)) }
  const properties: Record<string, string> = {}
  const style = { setProperty: (name: string, value: string) => Object.assign(properties, { [name]: value }) }
  const window: Record<string, unknown> = {
    ...(isIos ? { webkit: { messageHandlers: { iosListener: host } } } : { OSAndroid: host }),
    addEventListener: (name: string, listener: Listener) => Object.assign(listeners, { [name]: listener }),
  }
  const document = {
    documentElement: Object.assign(root, { style }),
    body: { getBoundingClientRect: () => ({ height: 99.5 }), clientWidth: 320 },
    addEventListener: window.addEventListener,
    querySelectorAll: () => pages,
  }
  const script = bridgeScript(location).replace(/^<script>|<\/script>$/g, '')
  runInContext(script, createContext({ window, document }))
  // biome-ignore lint/suspicious/noExplicitAny: whatever the script put there
  return { window: window as any, posted, fire: (name: string, event = {}) => listeners[name]?.(event), properties }
}

test.each<[DisplayLocation, string]>([
  ['top', 'top_banner'],
  ['center', 'center_modal'],
  ['bottom', 'bottom_banner'],
  ['full', 'full_screen'],
])('%s: says that it is ready, where it wants to be and how high it is', (location, displayLocation) => {
  for (const isIos of [false, true]) {
    const page = open(element(), { location, isIos })
    expect(page.posted).toEqual([])
    page.fire('load')
    const pageMetaData = { rect: { height: 100, width: 320 } }
    expect(page.posted).toEqual([
      { type: 'rendering_complete', pageMetaData, displayLocation, dragToDismissDisabled: false },
    ])
    expect(page.window.getPageMetaData()).toEqual(pageMetaData)
  }
})

test('puts in the tags that the SDK hands over, as text', () => {
  const greeting = text("Hello {{ name | default: 'you' }} of {{city}}{{ none }}")
  const attributes = { title: '{{ name }}', 'data-action': '{{ name }}' }
  const code: Made = { ...element({}, text('{{ name }}')), nodeName: 'SCRIPT' }
  const root = element({}, element(attributes, greeting), code)
  const page = open(root)
  page.window.setPlayerTags({ name: '<b>', city: 'Turin' })
  expect(greeting.nodeValue).toBe('Hello <b> of Turin')
  expect((root.firstChild as Made).attributes).toEqual([
    { name: 'title', value: '<b>' },
    { name: 'data-action', value: '{{ name }}' },
  ])
  expect((code.firstChild as Made).nodeValue).toBe('{{ name }}')
  expect(page.window.liquidPlayerTags).toEqual({ name: '<b>', city: 'Turin' })
})

test('puts in the defaults where the SDK has no tags', () => {
  const greeting = text(`Hello {{ name | default: "you" }}, {{ constructor }}!`)
  open(element({}, greeting)).fire('load')
  expect(greeting.nodeValue).toBe('Hello you, !')
})

test('tells what a button does when it is clicked, whatever inside of it was hit', () => {
  const inner = text('Buy')
  const action = { id: 'buy', close: true, url: 'https://example.com', url_target: 'browser' }
  const root = element({}, element({ 'data-action': JSON.stringify(action) }, element({}, inner)))
  const page = open(root)
  page.fire('click', { target: (root.firstChild as Made).firstChild })
  page.fire('click', { target: root })
  expect(page.posted).toEqual([{ type: 'action_taken', body: { click_type: 'button', ...action } }])
})

test('has the functions that authors call', () => {
  const target = element({ 'data-onesignal-unique-label': 'go' })
  const { window, posted } = open(element())
  const api = window.OneSignalIamApi
  const event = { target }
  api.trackClick(event)
  api.close(event)
  api.openUrl(event, 'https://example.com')
  api.addClickName(event, 'named')
  api.tagUser(event, { a: 'b' })
  api.triggerPushPrompt(event)
  api.triggerLocationPrompt(event)
  api.sendOutcome(event, 'won')
  const common = { click_type: 'button', id: 'go', close: false }
  expect(posted.map(({ body }) => body)).toEqual([
    common,
    { ...common, close: true },
    { ...common, url: 'https://example.com', url_target: 'browser', close: true },
    { ...common, name: 'named' },
    { ...common, tags: { adds: { a: 'b' }, removes: [] } },
    { ...common, prompts: ['push'] },
    { ...common, prompts: ['location'] },
    { ...common, outcomes: [{ name: 'won', unique: false }], tags: { adds: { won: 'true' }, removes: [] } },
  ])
})

test('turns pages, and tells which', () => {
  const pages = ['one', 'two'].map((id) => element({ 'data-page-id': id }))
  const page = open(element({}, ...pages), { pages })
  const shown = () => pages.map(({ style }) => (style as { display?: string }).display !== 'none')
  page.fire('load')
  expect(shown()).toEqual([true, false])
  page.window.OneSignalIamApi.showPage('two')
  expect(shown()).toEqual([false, true])
  expect(page.posted.slice(1)).toEqual([
    { type: 'page_change', pageId: 'one', pageIndex: 0 },
    { type: 'page_change', pageId: 'two', pageIndex: 1 },
  ])
})

test('keeps clear of notches', () => {
  const page = open(element())
  page.window.setSafeAreaInsets({ top: 24, bottom: 10, left: 0 })
  expect(page.properties).toEqual({
    '--safe-area-top': '24px',
    '--safe-area-right': '0px',
    '--safe-area-bottom': '10px',
    '--safe-area-left': '0px',
  })
})

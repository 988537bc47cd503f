// The script that every page of an in-app message contains. It communicates with the surrounding SDK. The SDKs call
// getPageMetaData, setSafeAreaInsets and setPlayerTags, and listen for rendering_complete, action_taken, page_change
// and resize. It is written in old JavaScript, because it runs in web views of phones that are many years old.

import { OUTPUT } from './liquid.ts'

export type DisplayLocation = 'top' | 'center' | 'bottom' | 'full'

/** The names that the SDKs use. */
const POSITIONS: Record<DisplayLocation, string> = {
  top: 'top_banner',
  center: 'center_modal',
  bottom: 'bottom_banner',
  full: 'full_screen',
}

const SCRIPT = `(function () {
  var output = new RegExp(OUTPUT, 'g')
  var pages = []
  var isFilled = false

  function post(message) {
    var text = JSON.stringify(message)
    if (window.OSAndroid) window.OSAndroid.postMessage(text)
    else if (window.webkit && window.webkit.messageHandlers && window.webkit.messageHandlers.iosListener)
      window.webkit.messageHandlers.iosListener.postMessage(text)
  }

  function fill(tags) {
    isFilled = true
    function put(text) {
      return text.replace(output, function (_, name, single, double) {
        var value = Object.prototype.hasOwnProperty.call(tags, name) ? tags[name] : ''
        return value === null || value === '' ? single || double || '' : String(value)
      })
    }
    function visit(node) {
      if (node.nodeType === 3 && node.nodeValue.indexOf('{' + '{') >= 0) node.nodeValue = put(node.nodeValue)
      if (node.nodeType !== 1 || node.nodeName === 'SCRIPT') return
      for (var i = 0; i < node.attributes.length; i++) {
        var attribute = node.attributes[i]
        var isText = attribute.name !== 'data-action' && attribute.value.indexOf('{' + '{') >= 0
        if (isText) attribute.value = put(attribute.value)
      }
      for (var child = node.firstChild; child; child = child.nextSibling) visit(child)
    }
    visit(document.documentElement)
  }

  function label(event) {
    for (var node = event && event.target; node && node.getAttribute; node = node.parentNode) {
      var id = node.getAttribute('data-onesignal-unique-label')
      if (id) return id
    }
    return ''
  }

  function act(event, action) {
    var body = { click_type: 'button', id: label(event), close: false }
    for (var name in action) body[name] = action[name]
    post({ type: 'action_taken', body: body })
  }

  window.liquidPlayerTags = {}
  window.setPlayerTags = function (tags) {
    window.liquidPlayerTags = tags || {}
    fill(window.liquidPlayerTags)
  }
  window.setSafeAreaInsets = function (insets) {
    ;['top', 'right', 'bottom', 'left'].forEach(function (side) {
      document.documentElement.style.setProperty('--safe-area-' + side, (insets[side] || 0) + 'px')
    })
  }
  window.getPageMetaData = function () {
    var height = Math.ceil(document.body.getBoundingClientRect().height)
    return { rect: { height: height, width: document.body.clientWidth } }
  }

  window.OneSignalIamApi = {
    trackClick: function (event) { act(event, {}) },
    close: function (event) { act(event, { close: true }) },
    openUrl: function (event, url) { act(event, { url: url, url_target: 'browser', close: true }) },
    addClickName: function (event, name) { act(event, { name: name }) },
    tagUser: function (event, tags) { act(event, { tags: { adds: tags, removes: [] } }) },
    triggerPushPrompt: function (event) { act(event, { prompts: ['push'] }) },
    triggerLocationPrompt: function (event) { act(event, { prompts: ['location'] }) },
    sendOutcome: function (event, name) {
      var adds = {}
      adds[name] = 'true'
      act(event, { outcomes: [{ name: name, unique: false }], tags: { adds: adds, removes: [] } })
    },
    showPage: function (id) {
      for (var i = 0; i < pages.length; i++) {
        var isIt = pages[i].getAttribute('data-page-id') === id
        pages[i].style.display = isIt ? '' : 'none'
        if (isIt) post({ type: 'page_change', pageId: id, pageIndex: i })
      }
    },
  }

  document.addEventListener('click', function (event) {
    for (var node = event.target; node && node.getAttribute; node = node.parentNode) {
      var action = node.getAttribute('data-action')
      if (action) return act(event, JSON.parse(action))
    }
  })
  window.addEventListener('resize', function () {
    post({ type: 'resize', pageMetaData: window.getPageMetaData() })
  })
  window.addEventListener('load', function () {
    if (!isFilled) fill({})
    pages = document.querySelectorAll('[data-page-id]')
    var first = pages.length > 0 && pages[0].getAttribute('data-page-id')
    for (var i = 1; i < pages.length; i++) pages[i].style.display = 'none'
    post({
      type: 'rendering_complete',
      pageMetaData: window.getPageMetaData(),
      displayLocation: POSITION,
      dragToDismissDisabled: false,
    })
    if (first) post({ type: 'page_change', pageId: first, pageIndex: 0 })
  })
})()`

/** Belongs in the head of a page, before anything that calls it. */
export const bridgeScript = (location: DisplayLocation) =>
  `<script>${SCRIPT.replace('OUTPUT', () => JSON.stringify(OUTPUT)).replace('POSITION', () =>
    JSON.stringify(POSITIONS[location]),
  )}</script>`

// The home page of a server: what it is, whether it is ready, and what to do next.

import { type CurlRequest, writeCurl } from './example-request.ts'
import { BASE_STYLE, BELL, escapeHtml, policyFor, renderPage } from './html.ts'
import { variable } from './variable.ts'

const STYLE = `${BASE_STYLE}
body{background:var(--wash)}
.wide{max-width:60rem;margin:0 auto;padding:clamp(1.5rem,6vw,4rem) 1.2rem 5rem}
header{display:flex;gap:.8rem;align-items:center}
header svg{width:44px;height:44px;color:var(--accent)}
h1{margin:0;font-size:2rem}
.lead{margin:.8rem 0 1.2rem;font-size:1.1rem;max-width:42rem}
.facts{display:flex;flex-wrap:wrap;gap:.4rem 1.6rem;margin:0 0 2rem;font-size:.92rem}
.facts div{display:flex;gap:.45rem}
.facts dt{color:var(--soft)}
.facts dd{margin:0}
.state::before{content:"";display:inline-block;width:.6rem;height:.6rem;margin-right:.4rem;border-radius:50%;background:currentColor}
.ready{color:var(--good)}.away{color:var(--wait)}
.doors{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,13rem),1fr));gap:.8rem;margin:0 0 2.6rem;padding:0;list-style:none}
.doors a{display:block;height:100%;padding:1rem 1.1rem;color:inherit;text-decoration:none;background:var(--page);border:1px solid var(--line);border-radius:10px}
.doors a:hover{border-color:var(--accent)}
.doors b{display:block;color:var(--accent)}
.doors span{font-size:.92rem;color:var(--soft)}
h2{margin:0 0 1rem;font-size:1.3rem}
.steps{margin:0;padding:0;list-style:none;counter-reset:step}
.steps li{counter-increment:step;padding:1.2rem 1.3rem .3rem;margin-bottom:.8rem;background:var(--page);border:1px solid var(--line);border-radius:10px}
.steps h3{margin:0 0 .5rem;font-size:1.02rem}
.steps h3::before{content:counter(step);display:inline-block;min-width:1.5rem;margin-right:.5rem;text-align:center;font-size:.85rem;color:var(--accent);border:1px solid currentColor;border-radius:50%;line-height:1.4rem}
.steps p{margin:0 0 .8rem}
@media(max-width:30rem){.steps li{padding:1rem .9rem .1rem}}
`

export const HOME_POLICY = policyFor(STYLE)

export type HomeFacts = {
  version: string
  interfaceVersion: string
  isReady: boolean
  hasDashboard: boolean
  hasGuides: boolean
}

/** The home page as JSON, for programs. */
export const describeHome = ({ version, interfaceVersion, isReady, hasDashboard }: HomeFacts) => ({
  name: 'Carillon',
  version,
  interface_version: interfaceVersion,
  status: isReady ? 'ready' : 'unavailable',
  links: {
    ...(hasDashboard && { dashboard: '/dashboard' }),
    documentation: '/docs',
    openapi: '/openapi.json',
    demo: '/demo',
    health: '/health',
    ready: '/ready',
  },
})

type Door = { href: string; title: string; words: string }

function doorsOf({ hasDashboard, hasGuides }: HomeFacts): Door[] {
  return [
    ...(hasDashboard
      ? [{ href: '/dashboard', title: 'Dashboard', words: 'Messages, journeys, people and numbers.' }]
      : []),
    ...(hasGuides
      ? [{ href: '/docs/try-it', title: 'Try it', words: 'See messages arrive without any account, step by step.' }]
      : []),
    {
      href: '/docs',
      title: 'Documentation',
      words: 'Every operation with an example in curl and Node, and the guides.',
    },
    { href: '/demo', title: 'Demo', words: 'Subscribe this browser to web push and send it a message.' },
    { href: '/openapi.json', title: 'OpenAPI', words: 'The interface for machines, version 3.1.' },
  ]
}

export function renderHome(facts: HomeFacts, origin: string): string {
  const { version, interfaceVersion, isReady, hasGuides } = facts
  const state = isReady
    ? '<dd class="state ready">ready</dd>'
    : '<dd class="state away">not ready: the database cannot be reached, or the server is stopping</dd>'
  const doors = doorsOf(facts).map(
    ({ href, title, words }) => `<li><a href="${href}"><b>${title}</b><span>${words}</span></a></li>`,
  )
  const keysGuide = hasGuides ? ' <a href="/docs/accounts-and-keys">More about keys.</a>' : ''
  const steps = [
    step(
      'Take your keys',
      `They were printed at the first start, and are kept in the data folder.${keysGuide} In a shell in Carillon’s folder:`,
      `export APP_ID=$(node -p 'require("./data/first-keys.json").app_id')\nexport APP_KEY=$(node -p 'require("./data/first-keys.json").app_key')`,
    ),
    step('Make a user', 'With an address to write to:', writeCurl(makeUser(origin))),
    step('Send a message', 'To that user, by the id that you know them by:', writeCurl(sendMail(origin))),
    step(
      'See what arrived',
      'Mail is caught and shown until you say how it goes out. A server that was started with <code>--sink</code> shows everything at the address that it printed.',
      writeCurl(readMailbox(origin)),
    ),
  ]
  return renderPage({
    title: 'Carillon',
    style: STYLE,
    body:
      `<div class="wide"><header>${BELL}<h1>Carillon</h1></header>` +
      '<p class="lead">A self-hosted customer-messaging server: users, segments, templates and journeys, and delivery by push, email, text message and webhook.</p>' +
      `<dl class="facts"><div><dt>State</dt>${state}</div><div><dt>Version</dt><dd>${escapeHtml(version)}</dd></div>` +
      `<div><dt>Interface</dt><dd>${escapeHtml(interfaceVersion)}</dd></div></dl>` +
      `<ul class="doors">${doors.join('')}</ul><h2>First steps</h2><ol class="steps">${steps.join('')}</ol></div>`,
  })
}

const step = (title: string, words: string, code: string) =>
  `<li><h3>${title}</h3><p>${words}</p><pre tabindex="0"><code>${escapeHtml(code)}</code></pre></li>`

const withKey: CurlRequest['headers'] = [['Authorization', `Key ${variable('APP_KEY')}`]]
const withJson: CurlRequest['headers'] = [...withKey, ['Content-Type', 'application/json']]

const makeUser = (origin: string): CurlRequest => ({
  method: 'POST',
  url: `${origin}/apps/${variable('APP_ID')}/users`,
  headers: withJson,
  body: {
    identity: { external_id: 'you' },
    subscriptions: [{ type: 'Email', token: 'you@example.com' }],
  },
})

const sendMail = (origin: string): CurlRequest => ({
  method: 'POST',
  url: `${origin}/notifications`,
  headers: withJson,
  body: {
    app_id: variable('APP_ID'),
    target_channel: 'email',
    include_aliases: { external_id: ['you'] },
    email_subject: 'Hello',
    email_body: '<p>The bells ring.</p>',
  },
})

const readMailbox = (origin: string): CurlRequest => ({
  method: 'GET',
  url: `${origin}/apps/${variable('APP_ID')}/email/mailbox`,
  headers: withKey,
  body: undefined,
})

// Templates that mean harm, by what they try. Each is content of an email unless it says otherwise.

export type Hostile = { tries: string; content: Record<string, unknown> }

/** Where a template might look for what is not its own. */
export const MARKER = 'kept-secret-7f3a91'

const inBody = (tries: string, bodies: string[]): Hostile[] =>
  bodies.map((email_body) => ({ tries, content: { isEmail: true, email_subject: 'x', email_body } }))
const pairs = <A, B, C>(left: readonly A[], right: readonly B[], join: (a: A, b: B) => C): C[] =>
  left.flatMap((a) => right.map((b) => join(a, b)))

const HIDDEN = [
  'constructor',
  '__proto__',
  'prototype',
  'toString',
  'valueOf',
  '__defineGetter__',
  '__lookupGetter__',
  'hasOwnProperty',
]
const HOLDERS = ['', 'user.', 'user.tags.', 'user.subscriptions.', 'app.', 'message.custom_data.', 'first_name.']

const prototypes = inBody('to read prototypes', [
  ...pairs(HOLDERS, HIDDEN, (holder, name) => `{{ ${holder}${name} }}{{ ${holder}${name} | json }}`),
  ...HIDDEN.map((name) => `{{ user["${name}"]["constructor"] }}{{ "x" | ${name} }}`),
  ...HIDDEN.map(
    (name) => `{% assign x = user | map: "${name}" %}{{ x | json }}{% for p in user.${name} %}{{ p }}{% endfor %}`,
  ),
  '{{ user | where: "constructor" | json }}',
  '{% assign a = user.subscriptions | sort: "__proto__" %}{{ a | json }}',
  '{{ user.subscriptions | sum: "constructor" }}',
])

const globals = inBody('to read the server', [
  ...[
    'process.env',
    'env',
    'process',
    'global',
    'globalThis',
    'global.marker',
    'this',
    'self',
    'window',
    'require',
    'module',
    'context',
    'opts',
    'liquid',
    'settings',
    'config',
    'secret',
    'marker',
    'db',
    'keys',
    'workerData',
    'parentPort',
  ].map((name) => `{{ ${name} }}{{ ${name} | json }}{{ ${name}.MARKER }}{{ ${name}["MARKER"] }}`),
  "{{ process.mainModule.require('fs').readFileSync('/etc/passwd') }}",
  '{{ "".constructor.constructor("return process")() }}',
  '{{ user.constructor.constructor | json }}',
  '{{ users | json }}{{ apps | json }}{{ subscriptions | json }}',
  '{% assign u = user | json %}{{ u }}',
])

const files = inBody('to read files', [
  ...pairs(
    ['include', 'render', 'layout'],
    ['"/etc/passwd"', '"../../package.json"', '"MARKER"', 'MARKER', "'./x'"],
    (tag, file) => `{% ${tag} ${file} %}`,
  ),
  '{% render "x" for user.subscriptions as s %}',
  '{% layout none %}{% block a %}{% endblock %}',
  '{% include "a" %}{% include "b" %}',
  '{% liquid\ninclude "x"\nrender "y" %}',
])

const LOOP = (size: string, body: string) => `{% for i in (1..${size}) %}${body}{% endfor %}`
const loops = inBody('to run for ever', [
  ...pairs(['1000000', '100000000', '1000000000', '9007199254740991', '1e9'], ['', 'x', '{{ i }}'], LOOP),
  ...pairs(
    [2, 3, 4, 5, 6],
    ['', '{{ i }}'],
    (depth, body) => `${'{% for i in (1..3000) %}'.repeat(depth)}${body}${'{% endfor %}'.repeat(depth)}`,
  ),
  LOOP('1000000', '{% assign x = i | append: "x" %}'),
  LOOP('1000000', '{% if i > 0 %}{% endif %}'),
  LOOP('1000000', '{% continue %}'),
  LOOP('2000', LOOP('2000', '{% cycle "a", "b" %}')),
  '{% tablerow i in (1..1000000) %}{{ i }}{% endtablerow %}',
  '{% assign n = 1000000000 %}{% for i in (1..n) %}{% endfor %}',
  '{% for i in (1..1000) %}{% for j in (1..1000) %}{% assign a = "b,c" | split: "," | sort | reverse %}{% endfor %}{% endfor %}',
  '{% for i in (-9999999999..9999999999) %}{% endfor %}',
])

const big = `{% capture s %}${'abcdefghij'.repeat(2_000)}{% endcapture %}`
const outputs = inBody('to fill the memory', [
  ...['append: s', 'prepend: s', 'replace: "a", s', 'concat: s', 'join: s', 'split: ""', 'split: "a" | join: s'].map(
    (filter) => `${big}${LOOP('40', `{% assign s = s | ${filter} %}`)}{{ s | size }}`,
  ),
  LOOP('100000', 'x'.repeat(50)),
  LOOP('1000', 'x'.repeat(5_000)),
  `${big}${LOOP('1000', '{{ s }}')}`,
  `${big}${LOOP('40', '{% capture s %}{{ s }}{{ s }}{% endcapture %}')}{{ s }}`,
  `${big}${LOOP('40', '{% capture s %}{{ s | raw }}{{ s | raw }}{% endcapture %}')}{% if s contains "zz" %}{% endif %}`,
  `${big}{% assign a = s | split: "" %}${LOOP('40', '{% assign a = a | concat: a %}')}{{ a | size }}`,
  ...[9, 99, 9_999, 999_999, 99_999_999, 2_147_483_647].map((width) => `{{ "now" | date: "%${width}Y" }}`),
  ...[9_999, 99_999_999].map((width) => `{{ "now" | date: "%-${width}d%0${width}H%^${width}B" }}`),
  `{{ "now" | date: "${'%c'.repeat(20_000)}" }}`,
  '{{ "x" | truncate: 99999999999, s }}',
  '{{ 10 | times: 1e308 | times: 1e308 }}',
])

const deep = (open: string, close: string, times: number) => open.repeat(times) + close.repeat(times)
const nested = inBody('to nest too deeply', [
  ...pairs(
    [100, 1_000, 10_000],
    [
      ['{% if a %}', '{% endif %}'],
      ['{% unless a %}', '{% endunless %}'],
      ['{% for a in b %}', '{% endfor %}'],
      ['{% case a %}{% when 1 %}', '{% endcase %}'],
      ['{% capture a %}', '{% endcapture %}'],
    ] as const,
    (times, [open, close]) => deep(open, close, times),
  ),
  `{{ ${'a['.repeat(20_000)}0${']'.repeat(20_000)} }}`,
  `{{ a${'.b'.repeat(50_000)} }}`,
  `{% if ${'a and '.repeat(60_000)}a %}{% endif %}`,
  `{{ a ${'| append: "x" '.repeat(20_000)}}}`,
  `{{ ${'('.repeat(10_000)} }}`,
])

const searches = inBody('to search without end', [
  ...[
    '<'.repeat(100_000),
    '<!--'.repeat(30_000),
    '<script'.repeat(20_000),
    '<style><'.repeat(20_000),
    ' '.repeat(150_000),
    '&'.repeat(150_000),
  ].flatMap((text) =>
    ['strip_html', 'squish', 'truncatewords: 3', 'escape_once', 'strip_newlines', 'url_decode'].map(
      (filter) => `{% capture s %}${text}{% endcapture %}{{ s | ${filter} | size }}`,
    ),
  ),
])

const DOLLAR = '$'
const engines = inBody('another engine’s tricks', [
  '{{#with "s" as |string|}}{{#with "e"}}{{#with split as |conslist|}}{{this.pop}}{{/with}}{{/with}}{{/with}}',
  '{{lookup (lookup this "constructor") "name"}}',
  '{{#each this}}{{@key}}{{/each}}',
  '{{> partial}}',
  '{{{ constructor.constructor("return process.env")() }}}',
  '<%= process.env.MARKER %>',
  '<%- include("/etc/passwd") %>',
  `${DOLLAR}{process.env.MARKER}`,
  '#{process.env.MARKER}',
  "{{ ''.__class__.__mro__[1].__subclasses__() }}",
  '{{ config.items() }}',
  '{% import os %}{{ os.environ }}',
  '{% set x = 1 %}{{ x }}',
  '{{ self._TemplateReference__context }}',
  `<#assign ex="freemarker.template.utility.Execute"?new()>${DOLLAR}{ex("id")}`,
  '*{T(java.lang.Runtime).getRuntime()}',
  '{php}echo 1;{/php}',
  '@(1+1)',
  '{{ env "MARKER" }}',
  '{{ 7*7 }}',
  '{{ a || b }}',
  '{{ `x` }}',
  '{{ a = b }}',
  '{{ () => process }}',
])

const mjml = (inner: string) =>
  `<mjml><mj-body><mj-section><mj-column>${inner}</mj-column></mj-section></mj-body></mjml>`
const mails = inBody('to misuse MJML', [
  mjml('<mj-include path="/etc/passwd" />'),
  mjml('<mj-include path="MARKER" type="html" />'),
  mjml('<MJ-INCLUDE path="file:///etc/passwd" />'),
  `<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><mjml><mj-body>&e;</mj-body></mjml>`,
  `<mjml><mj-head><mj-raw>&lol;</mj-raw></mj-head><mj-body></mj-body></mjml>`,
  mjml('<mj-text>x</mj-text>'.repeat(6_000)),
  `<mjml><mj-body>${'<mj-wrapper>'.repeat(5_000)}</mj-body></mjml>`,
  mjml(`<mj-text ${'a="b" '.repeat(20_000)}>x</mj-text>`),
  mjml(`<mj-text>${'<div>'.repeat(50_000)}</mj-text>`),
  mjml('<mj-raw>{% for i in (1..1000000000) %}{{ i }}{% endfor %}</mj-raw>'),
  mjml('{{ user.constructor }}'),
  '<mjml>',
  '<mjml><mj-body>',
])

const BREAKS = [
  '\r\nBcc: all@example.com',
  '\nBcc: all@example.com',
  '\rX: y',
  '\u0000',
  '\u2028Bcc: x',
  '\u0085Bcc: x',
  '\u000bx',
]
const inHeader = (tries: string, fields: Record<string, unknown>): Hostile => ({
  tries,
  content: { isEmail: true, email_subject: 'x', email_body: 'x', ...fields },
})
const headers: Hostile[] = [
  ...pairs(
    ['email_subject', 'email_from_name', 'email_from_address', 'email_reply_to_address', 'email_sender_domain'],
    BREAKS,
    (field, text) => inHeader('to add lines to a header', { [field]: `a@example.com${text}` }),
  ),
  ...BREAKS.map((text) => inHeader('to add lines to a header', { email_bcc: [`a@example.com${text}`] })),
  ...['email_subject', 'email_preheader', 'email_reply_to_address'].map((field) =>
    inHeader('to add lines to a header, by a value', { [field]: '{{ attack }}' }),
  ),
]

const links: Hostile[] = [
  'javascript:alert(1)',
  'JaVaScRiPt:alert(1)',
  ' javascript:x',
  'data:text/html,<script>',
  'vbscript:x',
  'file:///etc/passwd',
].map((url) => ({ tries: 'to open what runs code', content: { contents: { en: 'x' }, url } }))

export const hostileTemplates: Hostile[] = [
  ...prototypes,
  ...globals,
  ...files,
  ...loops,
  ...outputs,
  ...nested,
  ...searches,
  ...engines,
  ...mails,
  ...headers,
  ...links,
]

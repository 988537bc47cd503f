import { describe, expect, test } from 'vitest'
import { renderMarkdown } from './markdown.ts'

const render = (text: string) =>
  renderMarkdown(text, {
    resolveLink: (href) => (href.endsWith('.md') ? `/docs/${href.slice(0, -3)}` : undefined),
    resolveCode: (code) => (code === 'GET /x' ? '/docs#x' : undefined),
  }).html

describe('Markdown', () => {
  test.each([
    ['# The *first* `one`', '<h1 id="the-first-one">The <em>first</em> <code>one</code></h1>'],
    ['a\nb\n\nc', '<p>a\nb</p>\n<p>c</p>'],
    ['- a\n- b\n  more\n\nc', '<ul><li>a</li><li>b\nmore</li></ul>\n<p>c</p>'],
    ['- a\n  - b\n- c', '<ul><li><p>a</p>\n<ul><li>b</li></ul></li><li>c</li></ul>'],
    [
      '1. a\n\n   ```sh\n   x\n     y\n   ```\n2. b',
      '<ol><li><p>a</p>\n<pre tabindex="0"><code>x\n  y</code></pre></li><li>b</li></ol>',
    ],
    ['at most\n400. Each', '<p>at most\n400. Each</p>'],
    ['```\n# <no> **heading**\n```', '<pre tabindex="0"><code># &lt;no&gt; **heading**</code></pre>'],
    ['[a](b.md) [c](d) [`e`](f.md)', '<p><a href="/docs/b">a</a> c <a href="/docs/f"><code>e</code></a></p>'],
    ['[a](#b)', '<p><a href="#b">a</a></p>'],
    [
      '`GET /x` [`GET /x`](y.md)',
      '<p><a href="/docs#x"><code>GET /x</code></a> <a href="/docs/y"><code>GET /x</code></a></p>',
    ],
    ['<https://a.example>', '<p><a href="https://a.example" rel="noreferrer">https://a.example</a></p>'],
    ['<a id="x"></a>**b**', '<p><a id="x"></a><strong>b</strong></p>'],
    ['2 * 3 * 4, snake_case_name, \\<b>', '<p>2 * 3 * 4, snake_case_name, &lt;b&gt;</p>'],
    [
      '| A | |\n|---|---|\n| `on\\|off` | `a | b` \\| c |',
      '<div class="table" tabindex="0"><table><thead><tr><th>A</th><th></th></tr></thead><tbody><tr><td><code>on|off</code></td><td><code>a | b</code> | c</td></tr></tbody></table></div>',
    ],
  ])('%j', (text, html) => {
    expect(render(text)).toBe(html)
  })

  test('headings of the same words have ids of their own', () => {
    expect(render('## Send\n## Send')).toBe('<h2 id="send">Send</h2>\n<h2 id="send-1">Send</h2>')
  })

  test.each([
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '[a](javascript:alert(1))',
    '[a](data:text/html,x)',
    '<a id="x" onclick="y"></a>',
    '[a](https://x.example/"onclick="y)',
  ])('nothing gets through as HTML: %s', (text) => {
    const html = render(text)
    expect(html.replaceAll(/<\/?p>|<a href="https:[^"]*" rel="noreferrer">|<\/a>/g, '')).not.toContain('<')
    expect(html).not.toMatch(/href="(?:javascript|data)/)
  })
})

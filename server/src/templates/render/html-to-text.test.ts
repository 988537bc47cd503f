import { expect, test } from 'vitest'
import { htmlToText } from './html-to-text.ts'

test.each([
  ['plain', 'plain'],
  ['<p>one</p><p>two</p>', 'one\n\ntwo'],
  ['<div>one</div><div>two</div>', 'one\ntwo'],
  ['a<br>b<br/><br />c', 'a\nb\n\nc'],
  ['  a \n\t b  ', 'a b'],
  ['<b>a</b> <i>b</i><u>c</u>', 'a bc'],
  ['<h1>Title</h1>text', 'Title\n\ntext'],
  ['<ul><li>a</li><li>b</li></ul><ol><li>a<li>b</ol>', '* a\n* b\n\n1. a\n2. b'],
  ['<table><tr><td>a</td><td>b</td></tr><tr><th>c</th></tr></table>', 'a b\nc'],
  ['<a href="https://x.test/?a=1&amp;b=2">here</a>', 'here (https://x.test/?a=1&b=2)'],
  ['<a href="https://x.test">https://x.test</a>', 'https://x.test'],
  ['<a href="mailto:a@x.test">a@x.test</a>', 'a@x.test'],
  ['<a href="[unsubscribe_url]">Unsubscribe</a>', 'Unsubscribe ([unsubscribe_url])'],
  ['<a href="javascript:x()">here</a> <a name="x">there</a>', 'here there'],
  ['<a href=https://x.test><img src="a.png" alt="Logo"></a>', 'Logo (https://x.test)'],
  ['<a href="https://x.test"><img src="a.png"></a>', 'https://x.test'],
  [
    '&lt;b&gt; &amp;amp; &eacute;&#233;&#xE9; &nbsp;&mdash;&copy; &unknown; &#0;&#xD800;',
    '<b> &amp; ééé  —© &unknown;',
  ],
  ['a<script>x < y</script>b<style>p > a {}</style><head><title>t</title></head>c', 'abc'],
  ['a<!-- <p>b</p> -->c<!--[if mso]>d<![endif]-->', 'ac'],
  ['1 < 2 and 3 > 2', '1 < 2 and 3 > 2'],
  ['<p title="a > b">c</p>', 'c'],
  ['open <b', 'open <b'],
  ['a<hr>b', 'a\n----------\nb'],
  ['', ''],
])('%s', (html, text) => {
  expect(htmlToText(html)).toBe(text)
})

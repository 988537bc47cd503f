// The layout of all pages below /docs: navigation on the left, content beside it.

import { BASE_STYLE, BELL, escapeHtml, policyFor, renderPage } from './html.ts'

const STYLE = `${BASE_STYLE}
body{display:grid;grid-template-columns:17.5rem minmax(0,1fr)}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1rem 1.2rem 3rem;border-right:1px solid var(--line);background:var(--wash);font-size:.88rem}
.brand{display:flex;gap:.6rem;align-items:center;font-size:1.05rem;font-weight:650;color:inherit;text-decoration:none;margin-bottom:.9rem}
.brand svg{color:var(--accent)}
nav input{width:100%;font:inherit;font-size:1rem;padding:.45rem .65rem;border:1px solid var(--line);border-radius:6px;background:var(--page);color:inherit;margin-bottom:.6rem}
nav summary,nav .top{display:block;cursor:pointer;list-style:none;padding:.3rem 0;font-weight:600;color:inherit;text-decoration:none}
nav summary::-webkit-details-marker{display:none}
nav summary::before{content:"";display:inline-block;width:.4rem;height:.4rem;margin-right:.55rem;border-right:2px solid var(--soft);border-bottom:2px solid var(--soft);transform:rotate(-45deg) translate(-1px,-1px)}
nav details[open]>summary::before{transform:rotate(45deg) translate(-1px,-1px)}
nav details a{display:block;color:var(--soft);text-decoration:none;padding:.22rem 0 .22rem .95rem;border-left:1px solid var(--line);margin-left:.2rem;overflow-wrap:anywhere}
nav details a:hover{color:var(--ink);border-left-color:var(--soft)}
nav a[aria-current]{color:var(--accent);border-left-color:var(--accent);font-weight:600}
nav a.deep{padding-left:1.8rem;font-size:.95em}
#menu{display:none}
main{padding:2rem clamp(1.2rem,4vw,3.5rem) 6rem;min-width:0}
h1{margin:0 0 .5rem;font-size:1.9rem}
h2{margin:2.4rem 0 .7rem;font-size:1.35rem}
h3{margin:1.8rem 0 .5rem;font-size:1.1rem}
h4{margin:1.1rem 0 .3rem;font-size:.92rem}
p{margin:0 0 .8rem}
.copy{position:absolute;top:.45rem;right:.45rem;font:inherit;font-size:.75rem;padding:.15rem .5rem;color:var(--soft);background:var(--page);border:1px solid var(--line);border-radius:5px;cursor:pointer}
.copy:hover{color:var(--ink)}
.box{position:relative}
@media(max-width:52rem){
body{display:block}
nav{position:static;height:auto;padding:.8rem 1.2rem;border-right:0;border-bottom:1px solid var(--line)}
.brand{margin-bottom:.7rem}
nav input{margin-bottom:.2rem}
#menu{display:block;width:100%;font:inherit;font-weight:600;text-align:left;padding:.5rem 0;color:var(--accent);background:none;border:0;cursor:pointer}
nav.folds .groups{display:none}
nav.folds.open .groups{display:block}
nav summary,nav details a{padding-top:.5rem;padding-bottom:.5rem}
main{padding:1.4rem 1.2rem 4rem}
h1{font-size:1.6rem}
}`

const REFERENCE_STYLE = `
.facts{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;margin:0 0 1.4rem;color:var(--soft)}
.operation{border-top:1px solid var(--line);padding:1.8rem 0;display:grid;grid-template-columns:minmax(0,1fr);gap:0 2.5rem;max-width:60rem}
.operation h3{margin:0 0 .5rem;font-size:1.15rem}
.operation h3 a{color:inherit;text-decoration:none}
.operation>div{min-width:0}
.group{display:flex;flex-wrap:wrap;gap:.2rem 1rem;align-items:baseline}
.group a{font-size:.95rem;font-weight:400}
.path{display:flex;gap:.7rem;align-items:baseline;margin:0 0 .8rem}
.method{font-weight:700;font-size:.78rem;letter-spacing:.02em}
.get{color:var(--good)}.post{color:var(--accent)}.put{color:var(--wait)}.patch{color:var(--other)}.delete{color:var(--bad)}
.fields{margin:0;border-top:1px solid var(--line);font-size:.92rem}
.fields>div{padding:.5rem 0;border-bottom:1px solid var(--line)}
.fields dt{overflow-wrap:anywhere}
.fields dt code{font-weight:600}
.fields dd{margin:0}
.fields p{margin:.1rem 0 0}
.operation details{margin:.9rem 0 0}
.operation summary{cursor:pointer;font-size:.92rem;font-weight:600;padding:.15rem 0}
.needed{color:var(--wait);font-size:.85em}
.tabs{display:none;gap:.3rem;margin:0 0 .4rem}
.js .tabs{display:flex}
.tabs button{font:inherit;font-size:.8rem;padding:.15rem .6rem;color:var(--soft);background:none;border:1px solid var(--line);border-radius:5px;cursor:pointer}
.tabs button[aria-pressed=true]{color:var(--accent);border-color:var(--accent);font-weight:600}
.js:not(.node) .in-node,.js.node .in-curl{display:none}
#none{margin-top:2rem}
@media(min-width:82rem){.operation{grid-template-columns:minmax(0,1fr) 30rem;max-width:none}.sample{position:sticky;top:1rem;align-self:start;max-height:calc(100vh - 2rem);overflow:auto}.sample pre{white-space:pre-wrap;overflow-wrap:anywhere}}
@media(min-width:110rem){.operation{grid-template-columns:minmax(0,52rem) minmax(30rem,44rem)}}`

const GUIDE_STYLE = `
article{max-width:52rem}
article ul,article ol{margin:0 0 1rem;padding-left:1.4rem}
article li{margin:.25rem 0}
article li pre{margin:.5rem 0}
.table{overflow-x:auto;margin:0 0 1.2rem}
table{border-collapse:collapse;width:100%;font-size:.92rem}
td,th{text-align:left;vertical-align:top;padding:.45rem 1rem .45rem 0;border-bottom:1px solid var(--line)}
td:last-child,th:last-child{padding-right:0}
th{font-weight:600;color:var(--soft)}
td:first-child code{overflow-wrap:normal}
@media(max-width:52rem){
thead{display:none}
table,tbody,tr,td{display:block}
tr{padding:.6rem 0;border-bottom:1px solid var(--line)}
td{padding:.1rem 0;border:0}
td:first-child{font-weight:600}
td:first-child code{overflow-wrap:anywhere}
}`

/** Optional: without the script the page is complete, but nothing is folded and all examples are shown. */
const SCRIPT = `
const root=document.documentElement,nav=document.querySelector('nav'),box=nav.querySelector('input'),none=document.getElementById('none');
root.classList.add('js');
nav.classList.add('folds');
const menu=document.getElementById('menu');
const fold=(open)=>{nav.classList.toggle('open',open);menu.setAttribute('aria-expanded',String(open))};
fold(false);
menu.addEventListener('click',()=>fold(!nav.classList.contains('open')));
nav.addEventListener('click',(event)=>{if(event.target.closest('details a'))fold(false)});
const opened=new Map([...nav.querySelectorAll('details')].map((one)=>[one,one.open]));
const find=()=>{
  const words=box.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let found=0;
  for(const item of document.querySelectorAll('[data-words]')){
    item.hidden=!words.every((word)=>item.dataset.words.includes(word));
    if(!item.hidden)found++;
  }
  for(const group of document.querySelectorAll('[data-group]')){
    group.hidden=!group.querySelector('[data-words]:not([hidden])');
    if(opened.has(group))group.open=words.length>0||opened.get(group);
  }
  if(words.length>0)fold(true);
  if(none)none.hidden=found>0;
};
box.addEventListener('input',find);
if(box.value)find();
document.addEventListener('keydown',(event)=>{
  if(event.key==='/'&&!/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)){event.preventDefault();box.focus()}
});
const choose=(language)=>{
  root.classList.toggle('node',language==='node');
  for(const button of document.querySelectorAll('.tabs button'))button.setAttribute('aria-pressed',String(button.dataset.language===language));
  try{localStorage.setItem('language',language)}catch{}
};
let language='curl';
try{language=localStorage.getItem('language')||'curl'}catch{}
choose(language);
document.addEventListener('click',(event)=>{
  const {language}=event.target.dataset||{};
  if(!language)return;
  const before=event.target.getBoundingClientRect().top;
  choose(language);
  scrollBy(0,event.target.getBoundingClientRect().top-before);
});
if(navigator.clipboard)for(const code of document.querySelectorAll('main pre')){
  const frame=document.createElement('div'),copy=document.createElement('button');
  frame.className='box';copy.className='copy';copy.type='button';copy.textContent='Copy';
  copy.addEventListener('click',async()=>{
    await navigator.clipboard.writeText(code.textContent);
    copy.textContent='Copied';
    setTimeout(()=>{copy.textContent='Copy'},1500);
  });
  code.before(frame);
  frame.append(code,copy);
}
`

export type NavLink = { href: string; title: string; words: string; isCurrent?: boolean; isDeep?: boolean }
export type NavGroup = { title: string; links: NavLink[]; isOpen: boolean }

const KINDS = { reference: STYLE + REFERENCE_STYLE, guide: STYLE + GUIDE_STYLE }
export const DOCS_POLICY = {
  reference: policyFor(KINDS.reference, SCRIPT),
  guide: policyFor(KINDS.guide, SCRIPT),
}

export const renderDocsPage = (page: {
  kind: keyof typeof KINDS
  title: string
  top: NavLink
  groups: NavGroup[]
  main: string
}) =>
  renderPage({
    title: page.title,
    style: KINDS[page.kind],
    script: SCRIPT,
    body:
      `<nav aria-label="Documentation"><a class="brand" href="/">${BELL}Carillon</a>` +
      `<input type="search" placeholder="Search ( / )" aria-label="Search operations and guides" autocomplete="off">` +
      `<button id="menu" type="button">Contents</button><div class="groups">` +
      `<a class="top" href="${escapeHtml(page.top.href)}"${page.top.isCurrent ? ' aria-current="page"' : ''}>${escapeHtml(page.top.title)}</a>` +
      `${page.groups.map(renderGroup).join('')}</div></nav><main>${page.main}</main>`,
  })

const renderGroup = ({ title, links, isOpen }: NavGroup) =>
  `<details data-group${isOpen ? ' open' : ''}><summary>${escapeHtml(title)}</summary>${links.map(renderLink).join('')}</details>`

const renderLink = ({ href, title, words, isCurrent, isDeep }: NavLink) =>
  `<a href="${escapeHtml(href)}" data-words="${escapeHtml(words.toLowerCase())}"${isDeep ? ' class="deep"' : ''}` +
  `${isCurrent ? ' aria-current="page"' : ''}>${escapeHtml(title)}</a>`

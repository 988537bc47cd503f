// A mail as whoever gets it sees it: read, judged and taken apart by the programs of others.

import { Resolver } from 'node:dns/promises'
import { authenticate } from 'mailauth'
import { type DefaultTreeAdapterTypes, parse } from 'parse5'
import PostalMime, { type Email } from 'postal-mime'

export type ReadMail = Email & {
  header(name: string): string
  /** Of the HTML, as a browser would follow them: by what they show. */
  links: Map<string, string>
  images: string[]
}

export async function read(source: Buffer): Promise<ReadMail> {
  const mail = await PostalMime.parse(source)
  const links = new Map<string, string>()
  const images: string[] = []
  for (const element of elementsIn(parse(mail.html ?? ''))) {
    const attribute = (name: string) => element.attrs.find((it) => it.name === name)?.value ?? ''
    if (element.tagName === 'a') links.set(textOf(element), attribute('href'))
    if (element.tagName === 'img') images.push(attribute('src'))
  }
  const header = (name: string) => mail.headers.find(({ key }) => key === name.toLowerCase())?.value ?? ''
  return { ...mail, header, links, images }
}

type Node = DefaultTreeAdapterTypes.Node
type Element = DefaultTreeAdapterTypes.Element

const elementsIn = (node: Node): Element[] => [
  ...('tagName' in node ? [node] : []),
  ...('childNodes' in node ? node.childNodes.flatMap(elementsIn) : []),
]

const textOf = (node: Node): string =>
  'value' in node ? node.value : 'childNodes' in node ? node.childNodes.map(textOf).join('') : ''

type Untold = { algo: string; signingHeaders: { keys: string } }

/** What a server says of it that got it from this address, and asks this server for DNS. */
export async function judge(source: Buffer, from: { ip: string; helo: string; sender: string }, dns: string) {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  resolver.setServers([dns])
  const { dkim, spf, dmarc } = await authenticate(source, {
    ...from,
    resolver: (name, type) => resolver.resolve(name, type) as Promise<string[]>,
  })
  return {
    dkim: dkim.results.map((it) => {
      // Its types do not tell of all that is there.
      const { status, algo, signingDomain, signingHeaders } = it as typeof it & Untold
      const headers = signingHeaders.keys.toLowerCase().split(/\s*:\s*/)
      return { result: status.result, algorithm: algo, domain: signingDomain, aligned: status.aligned, headers }
    }),
    spf: spf && { result: spf.status.result, domain: spf.domain },
    dmarc: dmarc && { result: dmarc.status.result, alignment: dmarc.alignment },
  }
}

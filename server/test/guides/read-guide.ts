// The commands of a guide, in order, and what it says that they print.
//
// A fenced `sh` block is run. A `json` or unnamed block right behind it is what it prints. A comment in the line before a block changes
// that: `<!-- not run: why -->`, or `<!-- repeated until it prints this -->` for what takes a moment to come true. Servers are started with
// stand-ins, except for guides that say otherwise: `<!-- commands run against: PORT=3000 npm start -- --sink -->`.

export type GuideBlock = {
  line: number
  commands: string
  notRun: string | undefined
  isRepeated: boolean
  prints: { kind: 'json' | 'text'; text: string } | undefined
}

type Fence = { line: number; language: string; text: string; comment: string | undefined; followsFence: boolean }

export type ServerStart = { env: Record<string, string>; options: string[] }

export function readServerStart(markdown: string): ServerStart {
  const [, command = 'npm start -- --sink'] = /^<!-- commands run against: (.+) -->$/m.exec(markdown) ?? []
  const [before = '', after = ''] = command.split('npm start')
  const env = Object.fromEntries([...before.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]))
  return { env, options: after.split(' ').filter((option) => option !== '' && option !== '--') }
}

export function readGuide(markdown: string): GuideBlock[] {
  const blocks: GuideBlock[] = []
  for (const fence of readFences(markdown)) {
    const last = blocks.at(-1)
    if (fence.language === 'sh') blocks.push(toBlock(fence))
    else if (last && fence.followsFence && last.prints === undefined && ['', 'json'].includes(fence.language))
      last.prints = { kind: fence.language === 'json' ? 'json' : 'text', text: fence.text }
  }
  return blocks
}

function toBlock({ line, text, comment = '' }: Fence): GuideBlock {
  const notRun = /^not run: (.+)$/.exec(comment)?.[1]
  const isRepeated = comment === 'repeated until it prints this'
  if (comment !== '' && notRun === undefined && !isRepeated)
    throw new Error(`line ${line}: unknown comment: ${comment}`)
  return { line, commands: text, notRun, isRepeated, prints: undefined }
}

function* readFences(markdown: string): Generator<Fence> {
  let open: Fence | undefined
  let comment: string | undefined
  let followsFence = false
  for (const [index, line] of markdown.split('\n').entries()) {
    const fence = /^```(\w*)$/.exec(line)
    if (open) {
      if (fence) {
        yield open
        open = undefined
        comment = undefined
        followsFence = true
      } else open.text += `${line}\n`
    } else if (fence) open = { line: index + 1, language: fence[1] ?? '', text: '', comment, followsFence }
    else if (line.trim() !== '') {
      comment = /^<!-- (.+) -->$/.exec(line)?.[1]
      followsFence = false
    }
  }
}

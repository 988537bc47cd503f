// Every command of a guide is run as it stands there, against a server that was just installed and started with stand-ins.

import { readdirSync, readFileSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { freshFolder, launch, PROJECT } from '../process/launch.ts'
import { printsAsShown } from './compare-output.ts'
import { type GuideBlock, readGuide, readServerStart } from './read-guide.ts'
import { openShell, type Shell } from './shell.ts'

/** The addresses that guides name. */
const BASE_URL = 'http://localhost:3000'
const SINK_URL = 'http://127.0.0.1:41234'

const REPEATS = 100

const guides = ['README.md', ...readdirSync(join(PROJECT, 'docs')).map((name) => `docs/${name}`)]
  .filter((path) => path.endsWith('.md'))
  .filter((path) => path !== 'docs/command-line.md')
  .map((path) => ({ path, markdown: readFileSync(join(PROJECT, path), 'utf8') }))
  .map(({ path, markdown }) => ({ path, blocks: readGuide(markdown), start: readServerStart(markdown) }))
  .filter(({ blocks }) => blocks.some(({ notRun }) => notRun === undefined))

/** As after `git clone` and `npm ci`, but what the commands write stays out of the project. */
async function installation(): Promise<string> {
  const folder = await freshFolder()
  for (const name of ['package.json', 'server', 'node_modules', 'web-sdk', 'docs'])
    await symlink(join(PROJECT, name), join(folder, name))
  return folder
}

async function runBlock(
  shell: Shell,
  { commands, isRepeated, prints, line }: GuideBlock,
  toRun: (text: string) => string,
) {
  for (let repeat = 0; ; repeat++) {
    const { out, hasFailed } = await shell.run(toRun(commands))
    if (hasFailed) throw new Error(`line ${line}: a command failed:\n${commands}\n${out}`)
    if (!prints || printsAsShown({ ...prints, text: toRun(prints.text) }, out)) return
    if (!isRepeated || repeat === REPEATS) throw new Error(`line ${line}: shown:\n${prints.text}\nprinted:\n${out}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

test.each(guides)('the commands of $path', async ({ blocks, start }) => {
  const folder = await installation()
  const server = await launch({
    dataDir: join(folder, 'data'),
    command: [process.execPath, join(PROJECT, 'server/run.mjs'), 'main', ...start.options],
    env: start.env,
    options: { cwd: folder },
  })
  const url = await server.ready()
  const sink = /http:\/\/\S+(?=\/deliveries)/.exec(server.out())?.[0] ?? ''
  const toRun = (text: string) => text.replaceAll(BASE_URL, url).replaceAll(SINK_URL, sink)
  const shell = openShell(folder, {
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    HOME: folder,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  })
  try {
    // Guides begin where this one ends.
    await shell.run(toRun(variables))
    for (const block of blocks) if (block.notRun === undefined) await runBlock(shell, block, toRun)
  } finally {
    shell.close()
  }
  expect(server.err()).toBe('')
})

/** The block of the guide `try-it` that sets what all guides use. */
const variables = (() => {
  const tryIt = readGuide(readFileSync(join(PROJECT, 'docs/try-it.md'), 'utf8'))
  return tryIt.find(({ commands }) => commands.includes('BASE_URL='))?.commands ?? ''
})()

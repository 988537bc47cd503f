import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { permissions } from '../lib/permissions.ts'
import { ruleNames } from '../limits/rules.ts'
import { flagName, settings } from '../settings/config.ts'
import { commands } from './commands.ts'

const page = (name: string) => readFile(new URL(`../../../docs/${name}`, import.meta.url), 'utf8')

test('docs/settings.md has every setting as it is, and no other', async () => {
  const lines = (await page('settings.md')).split('\n').filter((line) => /^\| `[A-Z_]+` \|/.test(line))
  expect(lines).toEqual(
    Object.values(settings).map(({ env, fallback, help }) => {
      const shown = fallback === undefined ? 'none' : `\`${fallback}\``
      return `| \`${env}\` | \`${flagName(env)}\` | ${shown} | ${help.replaceAll('<', '\\<')} |`
    }),
  )
})

test('docs/command-line.md has every command as it is, and no other', async () => {
  const [, ...sections] = (await page('command-line.md')).split(/^### /m)
  expect(sections.map((section) => section.split('\n')[0])).toEqual(commands.map(({ name }) => name))
  commands.forEach(({ name, usage, summary, examples }, i) => {
    const section = sections[i] as string
    expect(section).toContain(`\n${summary}\n`)
    expect(section).toContain(`\n\`\`\`\n${`carillon ${name} ${usage}`.trim()}\n\`\`\`\n`)
    expect(section).toContain(`\n\`\`\`sh\n${examples.join('\n')}\n\`\`\`\n`)
  })
})

test('docs/command-line.md names every limit and permission', async () => {
  const text = await page('command-line.md')
  expect(text).toContain(
    `Limits: ${ruleNames()
      .map((name) => `\`${name}\``)
      .join(', ')};`,
  )
  expect(text).toContain(`Permissions: ${permissions.map((name) => `\`${name}\``).join(', ')}.`)
})

test('README and guides claim nothing that is not so', async () => {
  const read = (name: string) => readFile(new URL(`../../../${name}`, import.meta.url), 'utf8')
  const readme = await read('README.md')
  for (const claim of ['own server libraries', 'in a fraction of a second', '**Fast.**', 'or macOS with Node 20'])
    expect(readme).not.toContain(claim)
  expect(settings.twilioUrl.help).not.toContain('name no other address')
  // Figures that the README gives are those of the benchmarks.
  const bench = await read('bench/README.md')
  for (const [, figure = ''] of readme.matchAll(/\(([\d,]+) a second\)/g))
    expect(bench).toContain(figure.replace(',', ''))
  expect(await page('in-app.md')).toContain('Our web SDK does not')
})

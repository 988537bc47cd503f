import { expect, test } from 'vitest'
import { createLog } from './log.ts'
import { defaultLogFormat, prettyDestination } from './pretty-log.ts'

function lines(hasColour: boolean, write: (log: ReturnType<typeof createLog>) => void): string[] {
  const written: string[] = []
  write(
    createLog(
      'debug',
      prettyDestination((text) => written.push(text), hasColour),
    ),
  )
  return written
}

test('is for people on a terminal, and for machines where it goes anywhere else', () => {
  const [terminal, file] = [{ isTTY: true }, {}]
  expect(defaultLogFormat(terminal, terminal)).toBe('pretty')
  for (const [out, err] of [
    [file, terminal],
    [terminal, file],
    [file, file],
  ] as const)
    expect(defaultLogFormat(out, err)).toBe('json')
})

test('for people, an entry is a line with time, level, words and what belongs to it', () => {
  const [line] = lines(false, (log) => log.warn({ node: 'a-1', waits: 3, app: { id: 7 } }, 'the disk is nearly full'))
  expect(line).toMatch(/^\d\d:\d\d:\d\d warn {2}the disk is nearly full node=a-1 waits=3 app=\{"id":7\}\n$/)
})

test('the level has a colour where there are colours', () => {
  const [line] = lines(true, (log) => log.error('away'))
  expect(line?.slice('00:00:00 '.length)).toBe('\u001b[31merror\u001b[0m away\n')
})

test('secrets stay hidden, and nothing in an entry moves the cursor or begins another line', () => {
  const [line, ...more] = lines(false, (log) =>
    log.info({ password: 'planted', reason: 'a\u001b[2Jb', other: 'c\nd' }, 'one\ntwo\u001b[31m'),
  )
  expect(more).toEqual([])
  expect(line).not.toContain('planted')
  expect(line?.indexOf('\n')).toBe((line?.length ?? 0) - 1)
  expect(line).not.toContain('\u001b')
  expect(line).toContain('password="[hidden]"')
})

import { expect, test } from 'vitest'
import { createKeyedMutex } from './keyed-mutex.ts'

test('one thing one after the other, different things at the same time, whatever becomes of them', async () => {
  const turns = createKeyedMutex()
  const log: string[] = []
  const run = (of: string, name: string, fails = false) =>
    turns(of, async () => {
      log.push(`${name} begins`)
      await Promise.resolve()
      log.push(`${name} ends`)
      if (fails) throw new Error(name)
      return name
    })
  const asked = [run('x', 'first', true), run('x', 'second'), run('y', 'other')]
  const settled = await Promise.allSettled(asked)
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
  expect(log.indexOf('second begins')).toBeGreaterThan(log.indexOf('first ends'))
  expect(log.indexOf('other begins')).toBeLessThan(log.indexOf('first ends'))
  expect(await run('x', 'third')).toBe('third')
})

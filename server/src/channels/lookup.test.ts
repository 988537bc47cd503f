import { expect, test } from 'vitest'
import { type HostLookup, shareLookups, withFallback } from './lookup.ts'

test('a name that many want at a time is asked for once, and anew the next time', async () => {
  const asked: { name: string; answer: PromiseWithResolvers<{ address: string; family: number }[]> }[] = []
  const lookup = shareLookups((name) => {
    const answer = Promise.withResolvers<{ address: string; family: number }[]>()
    asked.push({ name, answer })
    return answer.promise
  })
  const those = [lookup('slow.example'), lookup('slow.example'), lookup('other.example'), lookup('slow.example')]
  expect(asked.map(({ name }) => name)).toEqual(['slow.example', 'other.example'])
  asked[1]?.answer.resolve([{ address: '192.0.2.2', family: 4 }])
  expect(await those[2]).toEqual([{ address: '192.0.2.2', family: 4 }])
  asked[0]?.answer.reject(new Error('ETIMEOUT'))
  const [first, second, , last] = await Promise.allSettled(those)
  expect([first, second, last].map((it) => it?.status)).toEqual(['rejected', 'rejected', 'rejected'])
  const again = lookup('slow.example')
  asked[2]?.answer.resolve([{ address: '192.0.2.1', family: 4 }])
  expect(await again).toEqual([{ address: '192.0.2.1', family: 4 }])
})

test('a name that DNS knows never waits for the threads of the system, however many names hang there', async () => {
  const asked: string[] = []
  const system: HostLookup = (name) => {
    asked.push(name)
    return name === 'host.internal' ? Promise.resolve([{ address: '10.0.0.1', family: 4 }]) : new Promise(() => {})
  }
  const dns: HostLookup = async (name) => {
    if (name.startsWith('hangs')) throw new Error('no answer in time')
    return name === 'push.example' ? [{ address: '192.0.2.1', family: 4 }] : []
  }
  const lookup = withFallback(dns, system)
  for (let n = 0; n < 100; n++) void lookup(`hangs${n}.example`)
  expect(await lookup('push.example')).toEqual([{ address: '192.0.2.1', family: 4 }])
  expect(await lookup('host.internal')).toEqual([{ address: '10.0.0.1', family: 4 }])
  expect(asked).not.toContain('push.example')
  expect(asked).toHaveLength(101)
})

import { describe, expect, test } from 'vitest'
import { createRsaKeyPool, type DkimKeyPair, MAX_WAITING } from './rsa-key-pool.ts'

/** Keys that are made when the test says so. */
function workshop() {
  const orders: PromiseWithResolvers<DkimKeyPair>[] = []
  const counts = { made: 0, underWay: 0, most: 0 }
  const makePair = () => {
    const order = Promise.withResolvers<DkimKeyPair>()
    orders.push(order)
    counts.underWay++
    counts.most = Math.max(counts.most, counts.underWay)
    return order.promise
  }
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return {
    makePair,
    counts,
    async finish(count: number) {
      for (let n = 0; n < count; n++) {
        const order = orders.shift()
        if (!order) throw new Error('nothing is being made')
        counts.underWay--
        order.resolve({ publicKey: Buffer.from(`key ${++counts.made}`), privatePem: '' })
        await settled()
      }
    },
    async fail() {
      counts.underWay--
      orders.shift()?.reject(new Error('no entropy'))
      await settled()
    },
  }
}

describe('a stock of keys', () => {
  test('has some ready, and makes as many anew as were taken, one at a time', async () => {
    const { makePair, counts, finish } = workshop()
    const stock = createRsaKeyPool(2, makePair)
    expect(counts.underWay).toBe(0)
    stock.fill()
    await finish(2)
    expect([stock.stats(), counts.underWay]).toEqual([{ spare: 2, waiting: 0 }, 0])
    // At hand: nothing has to be made for them to be answered.
    expect((await stock.take('one')).publicKey.toString()).toBe('key 1')
    expect((await stock.take('one')).publicKey.toString()).toBe('key 2')
    expect(counts.made).toBe(2)
    await finish(2)
    expect([stock.stats(), counts.most]).toEqual([{ spare: 2, waiting: 0 }, 1])
  })

  test('lets organizations take turns when there are none', async () => {
    const { makePair, counts, finish } = workshop()
    const stock = createRsaKeyPool(0, makePair)
    const served: string[] = []
    const take = (owner: string) => stock.take(owner).then(() => served.push(owner))
    const all = [...Array.from({ length: 5 }, () => take('greedy')), take('other'), take('third')]
    await finish(7)
    await Promise.all(all)
    expect(served).toEqual(['greedy', 'other', 'third', 'greedy', 'greedy', 'greedy', 'greedy'])
    expect([counts.most, counts.underWay]).toEqual([1, 0])
  })

  test('refuses an organization that has too many waiting, and no other', async () => {
    const { makePair, finish } = workshop()
    const stock = createRsaKeyPool(0, makePair)
    const waiting = Array.from({ length: MAX_WAITING }, () => stock.take('greedy'))
    await expect(stock.take('greedy')).rejects.toMatchObject({ kind: 'limited' })
    waiting.push(stock.take('other'))
    expect(stock.stats().waiting).toBe(MAX_WAITING + 1)
    await finish(MAX_WAITING + 1)
    expect(await Promise.all(waiting)).toHaveLength(MAX_WAITING + 1)
  })

  test('tells who waits that a key could not be made, and makes the next', async () => {
    const { makePair, finish, fail } = workshop()
    const stock = createRsaKeyPool(1, makePair)
    const [first, second] = [stock.take('one'), stock.take('one')]
    const refused = expect(first).rejects.toThrow('no entropy')
    await fail()
    await refused
    await finish(1)
    expect((await second).publicKey.toString()).toBe('key 1')
  })

  test('makes none ahead when it is closed', async () => {
    const { makePair, counts, finish } = workshop()
    const stock = createRsaKeyPool(3, makePair)
    stock.fill()
    const closed = stock.close()
    await finish(1)
    await closed
    expect(counts.underWay).toBe(0)
  })

  test('makes RSA keys of 2,048 bits', async () => {
    const { publicKey, privatePem } = await createRsaKeyPool(0).take('one')
    expect(publicKey.length).toBe(294)
    expect(privatePem).toMatch(/^-----BEGIN PRIVATE KEY-----/)
  })
})

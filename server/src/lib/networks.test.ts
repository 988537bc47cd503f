import { describe, expect, test } from 'vitest'
import { addressGroup, addressList, parseNetwork } from './networks.ts'

describe('addressList', () => {
  test.each([
    [['10.0.0.0/8'], '10.255.0.1', true],
    [['10.0.0.0/8'], '11.0.0.1', false],
    [['10.0.0.0/8'], '::ffff:10.1.2.3', true],
    [['::ffff:10.0.0.0/104'], '10.1.2.3', true],
    [['192.0.2.7'], '192.0.2.7', true],
    [['192.0.2.7'], '192.0.2.8', false],
    [['2001:db8::/32'], '2001:db8:1::5', true],
    [['2001:db8::/32'], '2001:db9::5', false],
    [['0.0.0.0/0'], '203.0.113.9', true],
    [['0.0.0.0/0'], '2001:db8::1', false],
    [['10.0.0.0/8', '2001:db8::/32'], '2001:db8::1', true],
    [['nonsense'], '10.0.0.1', false],
    [['10.0.0.0/8'], 'not an address', false],
  ])('%j holds %s: %s', (networks, address, expected) => {
    expect(addressList(networks).includes(address)).toBe(expected)
  })
})

test.each([
  '',
  '10.0.0.0/33',
  '10.0.0/8',
  '10.0.0.0/',
  '10.0.0.0/8/8',
  '10.0.0.0/-1',
  '::/129',
  'fe80::1%eth0/64',
  '010.0.0.1',
])('%j is no network', (text) => {
  expect(parseNetwork(text)).toBeUndefined()
})

test('addresses of one IPv6 line are one group, IPv4 addresses stand alone', () => {
  expect(addressGroup('2001:db8:0:1::5')).toBe(addressGroup('2001:0db8::1:ffff:2:3:4'))
  expect(addressGroup('2001:db8:0:1::5')).not.toBe(addressGroup('2001:db8:0:2::5'))
  expect(addressGroup('::1')).toBe('0:0:0:0::/64')
  expect(addressGroup('::ffff:192.0.2.1')).toBe('192.0.2.1')
})

import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { createAddressOf } from './client-address.ts'

const request = (remoteAddress: string, forwarded?: string | string[]) =>
  ({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } }) as unknown as IncomingMessage

test.each<[boolean | string, string, string | string[] | undefined, string]>([
  [false, '203.0.113.9', '198.51.100.1', '203.0.113.9'],
  [true, '10.0.0.1', undefined, '10.0.0.1'],
  [true, '10.0.0.1', '', '10.0.0.1'],
  [true, '10.0.0.1', '198.51.100.1, 10.0.0.2', '198.51.100.1'],
  ['10.0.0.0/8', '10.0.0.1', '198.51.100.1, 10.0.0.2', '198.51.100.1'],
  // What stands left of a stranger was written by the stranger.
  ['10.0.0.0/8', '10.0.0.1', '127.0.0.1, 198.51.100.1, 10.0.0.2', '198.51.100.1'],
  ['10.0.0.0/8', '203.0.113.9', '198.51.100.1', '203.0.113.9'],
  ['10.0.0.1, 10.0.0.2', '::ffff:10.0.0.1', ['198.51.100.1', '10.0.0.2'], '198.51.100.1'],
  ['nonsense', '10.0.0.1', '198.51.100.1', '10.0.0.1'],
])('with trust in %s, from %s with %j: %s', (trustProxy, remote, forwarded, expected) => {
  expect(createAddressOf(trustProxy)(request(remote, forwarded))).toBe(expected)
})

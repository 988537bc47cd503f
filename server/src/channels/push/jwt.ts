import { type KeyObject, sign } from 'node:crypto'

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Signed with SHA-256: ES256 for P-256 keys, RS256 for RSA keys. */
export function signJwt(header: { alg: 'ES256' | 'RS256' } & Record<string, string>, claims: object, key: KeyObject) {
  const content = `${encode(header)}.${encode(claims)}`
  // RSA signing ignores this encoding.
  const signature = sign('sha256', Buffer.from(content), { key, dsaEncoding: 'ieee-p1363' })
  return `${content}.${signature.toString('base64url')}`
}

export const toUnixSeconds = (time: Date) => Math.floor(time.getTime() / 1000)

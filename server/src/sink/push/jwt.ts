import { type KeyObject, verify } from 'node:crypto'

export type Jwt = {
  header: Record<string, unknown>
  claims: Record<string, unknown>
  isSignedBy(key: KeyObject): boolean
}

/** Returns undefined if the text is not a JWT. */
export function readJwt(text: string): Jwt | undefined {
  const [header, claims, signature, ...rest] = text.split('.')
  if (!header || !claims || !signature || rest.length > 0) return undefined
  try {
    const parse = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    return {
      header: parse(header),
      claims: parse(claims),
      isSignedBy: (key) =>
        verify(
          'sha256',
          Buffer.from(`${header}.${claims}`),
          { key, dsaEncoding: 'ieee-p1363' },
          Buffer.from(signature, 'base64url'),
        ),
    }
  } catch {
    return undefined
  }
}

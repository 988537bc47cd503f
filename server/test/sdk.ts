// What SDKs send: the headers that mark them, and identity tokens.

import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { Answer, Request, TestApp } from './app.ts'

/** As an SDK without a key. */
export const SDK = {
  'sdk-version': 'onesignal/android/050909',
  accept: 'application/vnd.onesignal.v1+json',
  authorization: '',
}

export type Signer = { publicKey: string; token(appId: string, externalId: string, now: Date): string }

export function createSigner(): Signer {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }) as string,
    token: (appId, externalId, now) =>
      signToken(privateKey, { iss: appId, identity: { external_id: externalId } }, now),
  }
}

function signToken(key: KeyObject, claims: object, now: Date): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const exp = Math.floor(now.getTime() / 1000) + 60
  const data = `${encode({ alg: 'ES256', typ: 'JWT' })}.${encode({ ...claims, exp })}`
  return `${data}.${sign('sha256', Buffer.from(data), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

/** Below `/apps/{id}` of the first app, as a device without proof. */
export const asDevice =
  (app: TestApp) =>
  (path: string, { headers, ...request }: Request = {}): Promise<Answer> =>
    app.app(path, { ...request, headers: { ...SDK, ...headers } })

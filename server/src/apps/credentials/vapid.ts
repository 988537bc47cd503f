// The key pair that identifies an app to browsers for web push. Generated here, because the private half never leaves
// the server.

import { generateKeyPairSync } from 'node:crypto'
import type { SecretBox } from '../../lib/secrets.ts'
import type { Db } from '../../storage/db.ts'
import { type AppOverview, findApp, setVapidPair } from '../store.ts'
import { sealCredential } from './sealed.ts'

/** Base64url without padding: the uncompressed point, and the scalar. */
export type VapidPair = { publicKey: string; privateKey: string }

export function newVapidPair(): VapidPair {
  const {
    x = '',
    y = '',
    d = '',
  } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    format: 'jwk',
  })
  const point = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
  return { publicKey: point.toString('base64url'), privateKey: d }
}

/**
 * Apps that were created by the command line, or before pairs existed, get theirs when it is first needed: commands may
 * run where SECRET_KEY is not known. Of several concurrent callers one stores a pair, and all read that one.
 */
export async function withVapidPair({ db, secrets }: { db: Db; secrets: SecretBox }, app: AppOverview) {
  if (app.vapidPublicKey !== null) return { ...app, vapidPublicKey: app.vapidPublicKey }
  const { publicKey, privateKey } = newVapidPair()
  await setVapidPair(db, app.id, publicKey, sealCredential(secrets, app.id, 'vapid', { privateKey }))
  const given = await findApp(db, app.id)
  if (!given?.vapidPublicKey) throw new Error('an app was left without its pair for web push')
  return { ...given, vapidPublicKey: given.vapidPublicKey }
}

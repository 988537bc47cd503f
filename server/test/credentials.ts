// Makers of push credentials. Every secret in them is named, so that tests can look for it where it must not be.

import { generateKeyPairSync } from 'node:crypto'
import forge from 'node-forge'

export const base64 = (content: string | Buffer) => Buffer.from(content).toString('base64')

/** An EC key as Apple hands it out; the lines of the PEM are what must never be seen again. */
export function aP8(namedCurve = 'P-256'): { file: string; pem: string } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return { file: base64(pem), pem }
}

let rsa: string | undefined
/** Made once: it takes a tenth of a second. */
export const rsaPem = () => {
  rsa ??= generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString()
  return rsa
}

export const serviceAccount = (changes: Record<string, unknown> = {}) => ({
  type: 'service_account',
  project_id: 'test-project',
  private_key_id: 'abc',
  private_key: rsaPem(),
  client_email: 'push@test-project.iam.gserviceaccount.com',
  token_uri: 'https://oauth2.googleapis.com/token',
  ...changes,
})
export const aServiceAccount = (changes: Record<string, unknown> = {}) =>
  base64(JSON.stringify(serviceAccount(changes)))

/** A self-signed certificate, long expired, with its key. */
export function p12Tree(password: string, uid = 'com.example.made', algorithm: '3des' | 'aes256' = '3des') {
  const key = forge.pki.privateKeyFromPem(rsaPem())
  const certificate = forge.pki.createCertificate()
  certificate.publicKey = forge.pki.setRsaPublicKey(key.n, key.e)
  certificate.serialNumber = '01'
  certificate.validity.notBefore = new Date('2020-01-01T00:00:00Z')
  certificate.validity.notAfter = new Date('2021-01-01T00:00:00Z')
  const subject = [
    { type: '0.9.2342.19200300.100.1.1', value: uid },
    { name: 'commonName', value: 'Carillon test, no real certificate' },
  ]
  certificate.setSubject(subject)
  certificate.setIssuer(subject)
  certificate.sign(key, forge.md.sha256.create())
  return forge.pkcs12.toPkcs12Asn1(key, certificate, password, { algorithm })
}

export const derOf = (tree: forge.asn1.Asn1) => Buffer.from(forge.asn1.toDer(tree).getBytes(), 'binary')

export const aP12 = (password: string, uid?: string, algorithm?: '3des' | 'aes256') =>
  base64(derOf(p12Tree(password, uid, algorithm)))

/** A file that asks for two billion rounds before its password can be checked. */
export function hostileP12(): Buffer {
  const tree = p12Tree('x')
  type Node = { value: Node[] }
  Object.assign((tree as unknown as Node).value[2]?.value[2] ?? {}, { value: '\x7f\xff\xff\xff' })
  return derOf(tree)
}

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

const MOST_ROUNDS = '\x7f\xff\xff\xff'
type Node = { type: number; value: Node[] | string }
const nodeOf = (tree: forge.asn1.Asn1) => tree as unknown as Node
const partOf = ({ value }: Node, n: number) => value[n] as Node

/** A file that asks for two billion rounds before its password can be checked. */
export function hostileP12(): Buffer {
  const tree = p12Tree('x')
  partOf(partOf(nodeOf(tree), 2), 2).value = MOST_ROUNDS
  return derOf(tree)
}

/** The same behind the right password: for the key of what is encrypted. */
export function hostileP12Inside(algorithm: '3des' | 'aes256'): Buffer {
  const tree = p12Tree('x', undefined, algorithm)
  const content = partOf(partOf(partOf(nodeOf(tree), 1), 1), 0)
  content.value = withMostRounds(content.value as string)
  const [digestInfo, salt] = [0, 1].map((n) => partOf(partOf(nodeOf(tree), 2), n)) as [Node, Node]
  const key = forge.pkcs12.generateKey('x', forge.util.createBuffer(salt.value as string), 3, 2048, 20)
  const mac = forge.hmac.create()
  mac.start('sha1', key)
  mac.update(content.value)
  partOf(digestInfo, 1).value = mac.digest().getBytes()
  return derOf(tree)
}

/** Every number of rounds in it, however deep. */
function withMostRounds(der: string): string {
  const change = (node: Node) => {
    if (typeof node.value !== 'string') node.value.forEach(change)
    else if (node.type === forge.asn1.Type.INTEGER && node.value === '\x08\x00') node.value = MOST_ROUNDS
    else if (node.type === forge.asn1.Type.OCTETSTRING && node.value.startsWith('\x30'))
      node.value = withMostRounds(node.value)
  }
  try {
    const tree = forge.asn1.fromDer(der)
    change(nodeOf(tree))
    return derOf(tree).toString('latin1')
  } catch {
    return der
  }
}

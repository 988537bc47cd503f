// Opens one p12 file, in a thread that can be terminated: the author of the file decides how long it takes.

import { createPrivateKey, type KeyObject, pbkdf2Sync, X509Certificate } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import forge from 'node-forge'
import type { P12Outcome, P12Request } from './open-p12.ts'

/**
 * For all key derivations of a file together: its integrity check, and each encrypted part, which may contain further
 * parts. OpenSSL, Keychain and Windows use 1 to 2,048 rounds for each, Java 10,000, Firefox 600,000.
 */
const MOST_ROUNDS = 2_000_000
class TooManyRounds extends Error {}
let rounds = 0

/** Called before each key derivation, so that work beyond the bound never starts. */
function spend(count: number) {
  rounds += count
  // The negated comparison also refuses NaN.
  if (!(rounds <= MOST_ROUNDS)) throw new TooManyRounds()
}

type Digest = { algorithm: string } | undefined
type DeriveKey = (password: string, salt: unknown, id: number, count: number, ...rest: unknown[]) => unknown

const { pbe } = forge.pki as unknown as { pbe: { generatePkcs12Key: DeriveKey } }
const derive = pbe.generatePkcs12Key
const deriveWithin: DeriveKey = (password, salt, id, count, ...rest) => {
  spend(count)
  return derive(password, salt, id, count, ...rest)
}
Object.assign(pbe, { generatePkcs12Key: deriveWithin })
Object.assign(forge.pkcs12, { generateKey: deriveWithin })
// Forge takes passwords byte by byte although the ciphers of PKCS #5 need them in UTF-8, and is about ten times slower.
Object.assign(forge.pkcs5, {
  pbkdf2(password: string, salt: string, count: number, bytes: number, digest: Digest) {
    spend(count)
    const algorithm = digest?.algorithm ?? 'sha1'
    return pbkdf2Sync(password, Buffer.from(salt, 'latin1'), count, bytes, algorithm).toString('latin1')
  },
})

const { keyBag, pkcs8ShroudedKeyBag, certBag } = forge.pki.oids as Record<string, string>

function open({ file, password }: P12Request): P12Outcome {
  let safe: forge.asn1.Asn1
  try {
    safe = forge.asn1.fromDer(Buffer.from(file).toString('binary'))
  } catch {
    return { problem: 'not a p12' }
  }
  let p12: forge.pkcs12.Pkcs12Pfx
  try {
    p12 = forge.pkcs12.pkcs12FromAsn1(safe, password)
  } catch (error) {
    return { problem: error instanceof TooManyRounds ? 'too many rounds' : 'not opened' }
  }
  const bags = (type: string | undefined) => (type && p12.getBags({ bagType: type })[type]) || []
  const keys = [...bags(keyBag), ...bags(pkcs8ShroudedKeyBag)].map(keyOf)
  const certificates = bags(certBag).map(certificateOf)
  for (const key of keys) {
    const own = certificates.find((certificate) => certificate.checkPrivateKey(key))
    if (!own) continue
    const chain = [own, ...certificates.filter((certificate) => certificate !== own)]
    return {
      key: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
      certificate: chain.join(''),
      subjectId: /^UID=(.+)$/m.exec(own.subject)?.[1] ?? null,
    }
  }
  return { problem: 'no pair' }
}

const derOf = (value: forge.asn1.Asn1) => Buffer.from(forge.asn1.toDer(value).getBytes(), 'binary')

/** Forge parses RSA keys itself and passes on all others unparsed. */
function keyOf({ key, asn1 }: forge.pkcs12.Bag): KeyObject {
  return key
    ? createPrivateKey({ key: derOf(forge.pki.privateKeyToAsn1(key)), format: 'der', type: 'pkcs1' })
    : createPrivateKey({ key: derOf(asn1), format: 'der', type: 'pkcs8' })
}

const certificateOf = ({ cert, asn1 }: forge.pkcs12.Bag) =>
  new X509Certificate(derOf(cert ? forge.pki.certificateToAsn1(cert) : asn1))

parentPort?.postMessage(open(workerData))

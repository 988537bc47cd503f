// Opens one p12 file, in a thread that can be killed: how long that takes is for whoever made the file to say.

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import forge from 'node-forge'
import type { P12Outcome, P12Request } from './open-p12.ts'

// A native derivation of a key does not end before it is done, not even when its thread is killed.
Object.assign(forge, { options: { usePureJavaScript: true } })

// Forge takes passwords byte for byte; ciphers of PKCS #5 want them in UTF-8.
const derive = forge.pkcs5.pbkdf2 as (password: string, ...rest: unknown[]) => string
Object.assign(forge.pkcs5, {
  pbkdf2: (password: string, ...rest: unknown[]) => derive(forge.util.encodeUtf8(password), ...rest),
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
  } catch {
    return { problem: 'not opened' }
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

/** Forge reads RSA itself and hands on everything else as it stands. */
function keyOf({ key, asn1 }: forge.pkcs12.Bag): KeyObject {
  return key
    ? createPrivateKey({ key: derOf(forge.pki.privateKeyToAsn1(key)), format: 'der', type: 'pkcs1' })
    : createPrivateKey({ key: derOf(asn1), format: 'der', type: 'pkcs8' })
}

const certificateOf = ({ cert, asn1 }: forge.pkcs12.Bag) =>
  new X509Certificate(derOf(cert ? forge.pki.certificateToAsn1(cert) : asn1))

parentPort?.postMessage(open(workerData))

// Certificates that stand in for those of the providers. The first is self-signed and the authority for all others:
// whoever trusts it trusts this process under any name.

import { generateKeyPairSync } from 'node:crypto'
import { isIP } from 'node:net'
import type { SecureContext } from 'node:tls'
import { createSecureContext } from 'node:tls'
import forge from 'node-forge'

export type ServerCertificate = { key: string; cert: string }

type DerField = forge.pki.CertificateField

let made: { pem: string; key: forge.pki.rsa.PrivateKey } | undefined
/** All certificates of this process share one key, because generating it takes a tenth of a second. */
function ownKey() {
  if (made) return made
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  made = { pem, key: forge.pki.privateKeyFromPem(pem) }
  return made
}

const AUTHORITY: DerField[] = [{ name: 'commonName', value: 'Carillon sink, no real certificate' }]
/** Like Apple's certificates for apps and websites: the UID of the subject is the topic. */
const uidField = (uid: string): DerField => ({ type: '0.9.2342.19200300.100.1.1', value: uid })

/** Valid for these names and addresses, and for 127.0.0.1. `cert` is also the authority to trust. */
export const certificateFor = (...names: string[]): ServerCertificate => sign(AUTHORITY, AUTHORITY, names)

export function certificateOfApp(uid: string): ServerCertificate {
  const subject = [uidField(uid), ...AUTHORITY]
  return sign(subject, subject, [])
}

const MOST_NAMES = 1_000

/**
 * For a server whose names are not known in advance: creates one certificate for each name, and keeps the newest ones.
 */
export function certificatesByName(): (name: string) => SecureContext {
  const contexts = new Map<string, SecureContext>()
  return (name) => {
    const known = contexts.get(name)
    if (known) return known
    const [oldest] = contexts.keys()
    if (contexts.size >= MOST_NAMES && oldest !== undefined) contexts.delete(oldest)
    const context = createSecureContext(sign([{ name: 'commonName', value: 'Carillon sink' }], AUTHORITY, [name]))
    contexts.set(name, context)
    return context
  }
}

let serial = 0x10000000

function sign(subject: DerField[], issuer: DerField[], names: string[]): ServerCertificate {
  const { pem, key } = ownKey()
  const certificate = forge.pki.createCertificate()
  certificate.publicKey = forge.pki.setRsaPublicKey(key.n, key.e)
  certificate.serialNumber = (++serial).toString(16)
  certificate.validity.notBefore = new Date('2020-01-01T00:00:00Z')
  certificate.validity.notAfter = new Date('2049-01-01T00:00:00Z')
  certificate.setSubject(subject)
  certificate.setIssuer(issuer)
  certificate.setExtensions([
    { name: 'basicConstraints', cA: subject === issuer },
    { name: 'subjectAltName', altNames: [...new Set([...names, '127.0.0.1'])].map(altName) },
  ])
  certificate.sign(key, forge.md.sha256.create())
  return { key: pem, cert: forge.pki.certificateToPem(certificate) }
}

const altName = (name: string) => (isIP(name) === 0 ? { type: 2, value: name } : { type: 7, ip: name })

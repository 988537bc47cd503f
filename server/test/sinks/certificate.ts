// A certificate that stands in for those of the providers: self-signed, and an authority for itself.

import forge from 'node-forge'
import { rsaPem } from '../credentials.ts'

export type ServerCertificate = { key: string; cert: string }

export const certificateFor = (...names: string[]): ServerCertificate => selfSigned(names)

/** As Apple gives them to apps and websites: the UID of the subject is the topic. */
export const certificateOfApp = (uid: string): ServerCertificate =>
  selfSigned([], [{ type: '0.9.2342.19200300.100.1.1', value: uid }])

function selfSigned(names: string[], more: forge.pki.CertificateField[] = []): ServerCertificate {
  const key = forge.pki.privateKeyFromPem(rsaPem())
  const certificate = forge.pki.createCertificate()
  certificate.publicKey = forge.pki.setRsaPublicKey(key.n, key.e)
  certificate.serialNumber = '01'
  certificate.validity.notBefore = new Date('2020-01-01T00:00:00Z')
  certificate.validity.notAfter = new Date('2049-01-01T00:00:00Z')
  const subject = [...more, { name: 'commonName', value: 'Carillon test, no real certificate' }]
  certificate.setSubject(subject)
  certificate.setIssuer(subject)
  certificate.setExtensions([
    { name: 'basicConstraints', cA: true },
    { name: 'subjectAltName', altNames: [...names.map((value) => ({ type: 2, value })), { type: 7, ip: '127.0.0.1' }] },
  ])
  certificate.sign(key, forge.md.sha256.create())
  return { key: rsaPem(), cert: forge.pki.certificateToPem(certificate) }
}

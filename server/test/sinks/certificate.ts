// A certificate that stands in for those of the providers: self-signed, and an authority for itself.

import forge from 'node-forge'
import { rsaPem } from '../credentials.ts'

export type ServerCertificate = { key: string; cert: string }

export function certificateFor(...names: string[]): ServerCertificate {
  const key = forge.pki.privateKeyFromPem(rsaPem())
  const certificate = forge.pki.createCertificate()
  certificate.publicKey = forge.pki.setRsaPublicKey(key.n, key.e)
  certificate.serialNumber = '01'
  certificate.validity.notBefore = new Date('2020-01-01T00:00:00Z')
  certificate.validity.notAfter = new Date('2049-01-01T00:00:00Z')
  const subject = [{ name: 'commonName', value: 'Carillon test provider' }]
  certificate.setSubject(subject)
  certificate.setIssuer(subject)
  certificate.setExtensions([
    { name: 'basicConstraints', cA: true },
    { name: 'subjectAltName', altNames: [...names.map((value) => ({ type: 2, value })), { type: 7, ip: '127.0.0.1' }] },
  ])
  certificate.sign(key, forge.md.sha256.create())
  return { key: rsaPem(), cert: forge.pki.certificateToPem(certificate) }
}

// Parses the credentials of push providers when they are set: what cannot work is refused at once, by the name of its
// field, and only what sending needs is kept.

import { createPrivateKey, type KeyObject } from 'node:crypto'
import { invalid } from '../../lib/errors.ts'
import { type OpenedP12, openP12, type P12Problem } from './open-p12.ts'

export type FcmServiceAccount = { projectId: string; clientEmail: string; privateKey: string }

export type ClientSecret = { secret: string }

/** What each provider needs to authenticate the sender. */
export type Credentials = {
  fcm_v1_service_account_json: FcmServiceAccount
  apns_p8: { key: string }
  apns_p12: OpenedP12
  safari_apns_p12: OpenedP12
  huawei_app_secret: ClientSecret
  adm_client_secret: ClientSecret
  wns_client_secret: ClientSecret
}
export type CredentialName = keyof Credentials
export const credentialNames: CredentialName[] = [
  'fcm_v1_service_account_json',
  'apns_p8',
  'apns_p12',
  'safari_apns_p12',
  'huawei_app_secret',
  'adm_client_secret',
  'wns_client_secret',
]

/** `owner` is the organization that the file belongs to. */
export type GivenCredential = { given: string; password: string; owner: string }
type CredentialReader<Credential> = (field: string, credential: GivenCredential) => Credential | Promise<Credential>

/** Real files have a fifth of this at most. */
const MAX_BYTES = 65_536

/** Allows line breaks, because command-line tools print Base64 with them. */
function readBase64(field: string, given: string): Buffer {
  const text = given.replaceAll(/\s/g, '')
  const bytes = Buffer.from(text, 'base64')
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text) || bytes.toString('base64').replace(/=+$/, '') !== text.replace(/=+$/, ''))
    throw invalid(`${field} must be the file in Base64`)
  if (bytes.length > MAX_BYTES) throw invalid(`${field} must have at most ${MAX_BYTES} bytes`)
  return bytes
}

/** Refuses a key with a passphrase too, because there is no field for the passphrase. */
function parsePrivateKey(pem: string): KeyObject | undefined {
  if (!/-----BEGIN (EC |RSA )?PRIVATE KEY-----/.test(pem)) return undefined
  try {
    return createPrivateKey(pem)
  } catch {
    return undefined
  }
}

const readP8: CredentialReader<Credentials['apns_p8']> = (field, { given }) => {
  const key = parsePrivateKey(readBase64(field, given).toString('latin1'))
  if (key?.asymmetricKeyType !== 'ec' || key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw invalid(`${field} must be a p8 file from Apple: an EC private key on P-256 in PEM`)
  return { key: key.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

/** Drops the URLs in the file: it must not decide where a signed request goes. */
const readServiceAccount: CredentialReader<FcmServiceAccount> = (field, { given }) => {
  const refused = (what: string) => invalid(`${field} must be the JSON of a service account: ${what}`)
  const account = parseObject(readBase64(field, given))
  if (!account) throw refused('it is not a JSON object')
  const { type, project_id: projectId, client_email: clientEmail, private_key: privateKey } = account
  if (type !== 'service_account') throw refused('its type must be "service_account"')
  if (typeof projectId !== 'string' || !/^[\w:.-]{1,128}$/.test(projectId))
    throw refused('its project_id is missing or not valid')
  if (typeof clientEmail !== 'string' || !/^[^\s@]{1,128}@[A-Za-z0-9.-]{1,128}$/.test(clientEmail))
    throw refused('its client_email is missing or not valid')
  const key = typeof privateKey === 'string' ? parsePrivateKey(privateKey) : undefined
  if (key?.asymmetricKeyType !== 'rsa') throw refused('its private_key is missing or not an RSA key in PEM')
  return { projectId, clientEmail, privateKey: key.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

function parseObject(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(bytes.toString('utf8'))
    return value !== null && typeof value === 'object' ? value : undefined
  } catch {
    return undefined
  }
}

const P12_PROBLEMS: Record<P12Problem, string> = {
  'not a p12': 'must be a p12 file',
  'not opened': 'cannot be opened with its password',
  'no pair': 'must hold a certificate together with its private key',
  'too many rounds': 'asks for more than 2000000 rounds of key derivation; export it again with fewer',
  'too long': 'takes too long to open; export it again with fewer rounds of key derivation',
}

const readP12: CredentialReader<OpenedP12> = async (field, { given, password, owner }) => {
  const outcome = await openP12(owner, readBase64(field, given), password)
  if ('problem' in outcome) throw invalid(`${field} ${P12_PROBLEMS[outcome.problem]}`)
  return outcome
}

/** As the provider's console shows it, not in Base64. */
const readClientSecret: CredentialReader<ClientSecret> = (field, { given }) => {
  const secret = given.trim()
  if (!/^[\x21-\x7e]{8,512}$/.test(secret))
    throw invalid(`${field} must be a secret of 8 to 512 characters without spaces`)
  return { secret }
}

const readers: { [Name in CredentialName]: CredentialReader<Credentials[Name]> } = {
  fcm_v1_service_account_json: readServiceAccount,
  apns_p8: readP8,
  apns_p12: readP12,
  safari_apns_p12: readP12,
  huawei_app_secret: readClientSecret,
  adm_client_secret: readClientSecret,
  wns_client_secret: readClientSecret,
}

/** Throws errors that name the field and reveal nothing of its content. */
export const readCredential = async <Name extends CredentialName>(
  name: Name,
  credential: GivenCredential,
): Promise<Credentials[Name]> => readers[name](name, credential)

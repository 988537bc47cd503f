// Checks and reads a body: its type, its encoding, its size. Reading happens after the key is checked.

import type { IncomingMessage } from 'node:http'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { AppError, invalid } from '../../lib/errors.ts'
import type { BodyLease } from './budget.ts'
import { FIRST_BYTES, receiveBody, tooLarge } from './receive.ts'

const unsupported = (title: string) => new AppError('unsupported-media-type', { code: 'request-3', title })

export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

export const JSON_BODY = 'application/json'
export const FORM_BODY = 'application/x-www-form-urlencoded'
type MediaType = typeof JSON_BODY | typeof FORM_BODY

/**
 * Accepts exactly this type, in any letter case and optionally with `charset=utf-8`, so that no other spelling bypasses
 * a check.
 */
export function isOfType(wanted: MediaType, contentType: string | undefined): boolean {
  if (contentType === wanted) return true
  if (contentType === undefined) return false
  const [type = '', ...parameters] = contentType.toLowerCase().split(';')
  return type.trim() === wanted && parameters.every(isCharset)
}

function isCharset(parameter: string): boolean {
  const text = parameter.trim()
  return text === '' || text === 'charset=utf-8' || text === 'charset="utf-8"' || text === 'charset=utf8'
}

type Inflate = typeof gunzip
/** A Map, because the caller chooses the name: a plain object would also have an entry for `constructor`. */
const inflaters = new Map<string, Inflate>([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  ['deflate', inflate],
  ['br', brotliDecompress as unknown as Inflate],
])

export type BodyRules = { type: MediaType | undefined; maxBytes: number; stallMs: number }

/**
 * Reads a body of the required type (or of any) and decompresses it. Neither the compressed nor the decompressed bytes
 * may exceed `maxBytes`. Nothing is read before the lease holds memory for it.
 */
export function readBody(raw: IncomingMessage, rules: BodyRules, lease: BodyLease): Promise<Buffer> {
  const { type, maxBytes, stallMs } = rules
  if (type && !isOfType(type, raw.headers['content-type']))
    throw unsupported(`The Content-Type of a body must be ${type}`)
  const encoding = raw.headers['content-encoding']?.trim().toLowerCase() || 'identity'
  const inflater = inflaters.get(encoding)
  if (encoding !== 'identity' && !inflater)
    throw unsupported('The Content-Encoding of a body must be gzip, deflate or br')
  const given = raw.headers['content-length']
  const length = given === undefined ? undefined : Number(given)
  if (length !== undefined && length > maxBytes) throw tooLarge(maxBytes)

  const mostBytes = inflater ? 2 * maxBytes : maxBytes
  const received = receiveBody(raw, { length, isFinal: !inflater, maxBytes, mostBytes, stallMs }, lease)
  return inflater ? received.then((bytes) => inflateBody(inflater, bytes, { maxBytes, mostBytes }, lease)) : received
}

/**
 * Decompresses into the memory that is already held first. Nearly all bodies are small, and decompressing a large one a
 * second time costs less than holding memory that is not needed.
 */
async function inflateBody(
  inflater: Inflate,
  bytes: Buffer,
  { maxBytes, mostBytes }: { maxBytes: number; mostBytes: number },
  lease: BodyLease,
): Promise<Buffer> {
  if (bytes.length === 0) return bytes
  const isHeldWhole = lease.bytes > FIRST_BYTES || maxBytes <= FIRST_BYTES
  let result = await inflated(inflater, bytes, isHeldWhole ? maxBytes : FIRST_BYTES)
  if (result === 'too large' && !isHeldWhole) {
    await lease.hold(mostBytes)
    result = await inflated(inflater, bytes, maxBytes)
  }
  if (result === 'too large') throw tooLarge(maxBytes)
  lease.shrink(result.length)
  return result
}

/**
 * Runs in zlib's own threads and stops at the first byte over the limit, so a decompression bomb costs at most
 * `maxBytes` of memory.
 */
function inflated(inflater: Inflate, bytes: Buffer, maxBytes: number): Promise<Buffer | 'too large'> {
  return new Promise((resolve, reject) => {
    inflater(bytes, { maxOutputLength: maxBytes }, (error, result) => {
      if (!error) resolve(result)
      else if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') resolve('too large')
      else reject(invalid('The body cannot be decompressed'))
    })
  })
}

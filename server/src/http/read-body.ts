// Bodies are read here and nowhere else, after the key is judged.

import type { IncomingMessage } from 'node:http'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { AppError, invalid } from '../lib/errors.ts'

export const tooLarge = (maxBytes: number) =>
  new AppError('too-large', { code: 'request-2', title: `The body is larger than ${maxBytes} bytes` })

const unsupported = (title: string) => new AppError('unsupported-media-type', { code: 'request-3', title })

export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

export const JSON_BODY = 'application/json'
export const FORM_BODY = 'application/x-www-form-urlencoded'
type MediaType = typeof JSON_BODY | typeof FORM_BODY

/** The type as it is, perhaps with `charset=utf-8`, in any case; nothing else, so that no spelling slips past a check. */
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
const inflaters: Record<string, Inflate> = {
  gzip: gunzip,
  'x-gzip': gunzip,
  deflate: inflate,
  br: brotliDecompress as unknown as Inflate,
}

/** The bytes of a body of this type, or of any, inflated. Neither what is sent nor what it inflates to may be larger than `maxBytes`. */
export function readBody(raw: IncomingMessage, type: MediaType | undefined, maxBytes: number): Promise<Buffer> {
  if (type && !isOfType(type, raw.headers['content-type']))
    throw unsupported(`The Content-Type of a body must be ${type}`)
  const encoding = raw.headers['content-encoding']?.trim().toLowerCase() || 'identity'
  const inflater = inflaters[encoding]
  if (encoding !== 'identity' && !inflater)
    throw unsupported('The Content-Encoding of a body must be gzip, deflate or br')
  if (Number(raw.headers['content-length']) > maxBytes) throw tooLarge(maxBytes)
  const received = receive(raw, maxBytes)
  return inflater
    ? received.then((bytes) => (bytes.length > 0 ? inflated(inflater, bytes, maxBytes) : bytes))
    : received
}

function receive(raw: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let received = 0
    raw.on('data', (chunk: Buffer) => {
      received += chunk.length
      if (received > maxBytes) {
        // Node reads and drops the rest, until the request's time is up: a caller who is still writing reads no answer.
        raw.removeAllListeners('data')
        reject(tooLarge(maxBytes))
      } else chunks.push(chunk)
    })
    raw.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, received)))
    // The caller is gone; the answer goes nowhere, but the request must end.
    raw.on('error', () => reject(invalid('The body ended early')))
  })
}

/** In zlib's own threads, and stopped at the first byte too many: a bomb costs at most `maxBytes` of memory. */
function inflated(inflater: Inflate, bytes: Buffer, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    inflater(bytes, { maxOutputLength: maxBytes }, (error, result) => {
      if (!error) resolve(result)
      else if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') reject(tooLarge(maxBytes))
      else reject(invalid('The body cannot be decompressed'))
    })
  })
}

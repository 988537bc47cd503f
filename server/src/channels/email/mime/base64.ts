// Base64 for email (RFC 2045): in lines of 76 characters, each with a line end. No line begins with a dot or contains
// "=_".

const LINE_BYTES = 57
const CR = 13
const LF = 10

export function encodeBase64(bytes: Buffer): Buffer {
  const out = Buffer.allocUnsafe(Math.ceil(bytes.length / 3) * 4 + Math.ceil(bytes.length / LINE_BYTES) * 2)
  let length = 0
  for (let i = 0; i < bytes.length; i += LINE_BYTES) {
    length += out.write(bytes.toString('base64', i, Math.min(i + LINE_BYTES, bytes.length)), length, 'latin1')
    out[length++] = CR
    out[length++] = LF
  }
  return out
}

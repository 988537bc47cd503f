/**
 * The address used in examples: the public URL if there is one, otherwise the address that the reader has just used. It
 * is inserted into a page, so only a host and a port are taken from the request.
 */
export const originFor = (publicUrl: string | undefined, host: string | undefined): string => {
  if (publicUrl !== undefined) return publicUrl.replace(/\/+$/, '')
  return host !== undefined && /^(?:[\w.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i.test(host)
    ? `http://${host}`
    : 'http://localhost:3000'
}

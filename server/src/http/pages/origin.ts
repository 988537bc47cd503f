/**
 * The address that examples name: the one that the world knows the server by, else the one that the reader has just used. It is
 * put into a page, so nothing but a host and a port is taken from the request.
 */
export const originFor = (publicUrl: string | undefined, host: string | undefined): string => {
  if (publicUrl !== undefined) return publicUrl.replace(/\/+$/, '')
  return host !== undefined && /^(?:[\w.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i.test(host)
    ? `http://${host}`
    : 'http://localhost:3000'
}

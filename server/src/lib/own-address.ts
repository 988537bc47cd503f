/**
 * The URL at which a server that listens on this address is reachable; localhost if it listens on all addresses. The
 * Host header of a request is chosen by the caller, so it is never used in URLs that the server answers or stores.
 */
export const reachableAddress = (address: string) =>
  address.replace(/^http:\/\/(?:0\.0\.0\.0|\[::\])(?=:\d+$)/, 'http://localhost')

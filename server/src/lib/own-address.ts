/**
 * Where a server that listens on this address is reached: one that listens everywhere, as localhost. What a request says in its Host is
 * the caller's word, and goes into no address that the server answers or keeps.
 */
export const reachableAddress = (address: string) =>
  address.replace(/^http:\/\/(?:0\.0\.0\.0|\[::\])(?=:\d+$)/, 'http://localhost')

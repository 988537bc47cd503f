import { readFileSync } from 'node:fs'
import { listedProviders, type ProviderList, readProviders } from '../email/inbox-providers/providers.ts'

/**
 * The built-in list of inbox providers, overridden by the operator's entries. Any problem with the file is reported in
 * one line.
 */
export function readInboxProviders(path: string): ProviderList {
  try {
    return readProviders(JSON.parse(readFile(path)), listedProviders)
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'it is not JSON' : (error as Error).message
    throw new Error(`cannot be read from ${path}: ${reason}`)
  }
}

function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw new Error('it cannot be read')
  }
}

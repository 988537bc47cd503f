export type Licence = { name: string; version: string; licence: string }
type Package = { version?: string; license?: string; dev?: boolean; devOptional?: boolean }
export function listLicences(lock: { packages: Record<string, Package> }): Licence[]
export function isAllowed(licence: string): boolean
export function writeList(list: readonly Licence[]): string

import { type Actor, SYSTEM } from './schema.ts'

type Call = { caller: { kind: string; keyId?: string }; ip: string }

/** Who is behind a request, for the audit log. */
export const actorOf = ({ caller: { kind, keyId }, ip }: Call): Actor =>
  (kind === 'key' || kind === 'organization') && keyId !== undefined ? { kind, id: keyId, ip } : SYSTEM

import { type Actor, SYSTEM } from '../app.ts'

/** What a request says about its sender. */
export type RequestOrigin = { caller: { kind: string; keyId?: string }; ip: string }

/** Who is behind a request, for the audit log. */
export const actorOf = ({ caller: { kind, keyId }, ip }: RequestOrigin): Actor =>
  (kind === 'key' || kind === 'organization') && keyId !== undefined ? { kind, id: keyId, ip } : SYSTEM

/** The operator at the command line, who needs no key. */
export const OPERATOR: RequestOrigin = { caller: { kind: 'operator' }, ip: '' }

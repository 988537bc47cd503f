import { forbidden } from '../lib/errors.ts'
import { EXTERNAL_ID } from './identity.ts'

/** An SDK that proved who its user is may touch that user alone. Without identity verification nothing is proved or asked. */
export function refuseStranger(user: { aliases: ReadonlyMap<string, string> }, provenExternalId: string | undefined) {
  if (provenExternalId !== undefined && user.aliases.get(EXTERNAL_ID) !== provenExternalId)
    throw forbidden('The identity token is for another user')
}

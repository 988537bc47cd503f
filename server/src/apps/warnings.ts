// What is allowed but seldom meant, said wherever an app is shown.

import type { AppSettings } from './app.ts'

/** SDKs come in without a key and without proof of whose device they are. */
export const isDoorOpen = ({ keylessSdk, identityRequired }: Pick<AppSettings, 'keylessSdk' | 'identityRequired'>) =>
  keylessSdk && !identityRequired

export const OPEN_DOOR =
  'Anybody who knows the app id and the external id of a user can sign in as that user, and the app holds email addresses or phone numbers.'
export const OPEN_DOOR_ADVICE =
  'Require identity tokens (require_identity), or let no SDK in without a key (keyless off).'

export const warningsAbout = (app: Pick<AppSettings, 'keylessSdk' | 'identityRequired'>, hasAddresses: boolean) =>
  isDoorOpen(app) && hasAddresses ? [`${OPEN_DOOR} ${OPEN_DOOR_ADVICE}`] : []

// Settings that are allowed but rarely intended. The warnings appear wherever an app is shown.

import type { AppSettings } from './app.ts'

/** SDKs are admitted without a key and without proof of whose device they are. */
export const isOpenToUnverifiedSdks = ({
  keylessSdk,
  identityRequired,
}: Pick<AppSettings, 'keylessSdk' | 'identityRequired'>) => keylessSdk && !identityRequired

export const UNVERIFIED_SDKS_WARNING =
  'Anybody who knows the app id and the external id of a user can sign in as that user, and the app holds email addresses or phone numbers.'
export const UNVERIFIED_SDKS_ADVICE =
  'Require identity tokens (require_identity), or let no SDK in without a key (keyless off).'

export const warningsForApp = (app: Pick<AppSettings, 'keylessSdk' | 'identityRequired'>, hasAddresses: boolean) =>
  isOpenToUnverifiedSdks(app) && hasAddresses ? [`${UNVERIFIED_SDKS_WARNING} ${UNVERIFIED_SDKS_ADVICE}`] : []

// The fields that the Android SDK reads, whichever provider delivers them. All values are strings.

import type { PushContent } from '../content.ts'
import { writeFcmPush } from './payload.ts'

/**
 * The collapse id has to be part of the data: providers other than Google do not tell the SDK which message replaces
 * which.
 */
export const writeAndroidData = (content: PushContent): Record<string, string> => ({
  ...writeFcmPush(content).data,
  ...(content.collapseId !== undefined && { collapse_key: content.collapseId }),
})

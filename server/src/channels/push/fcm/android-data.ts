// The fields that the SDK for Android reads, whoever brings them. All values are text.

import type { PushContent } from '../content.ts'
import { writeFcmPush } from './payload.ts'

/** Where the provider is not Google, nobody but us tells the SDK what replaces what. */
export const writeAndroidData = (content: PushContent): Record<string, string> => ({
  ...writeFcmPush(content).data,
  ...(content.collapseId !== undefined && { collapse_key: content.collapseId }),
})

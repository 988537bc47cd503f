// The dependencies of the endpoints for SDKs.

import type { SecretBox } from '../lib/secrets.ts'
import type { Db } from '../storage/db.ts'

export type SdkContext = { db: Db; secrets: SecretBox }

// What the endpoints of SDKs are made of.

import type { SecretBox } from '../lib/secrets.ts'
import type { Db } from '../storage/db.ts'

export type SdkContext = { db: Db; secrets: SecretBox }

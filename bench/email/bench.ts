// Email: what sending a tracked mail takes.

import { readOptions, report } from '../kit/report.ts'
import { measureChannel } from './channel.ts'
import { measureWholeSend } from './whole-send.ts'

const options = readOptions({ rounds: 5, mails: 100_000, signed: 20_000 })

const { mails, signed, json } = options
await report(
  [
    ...(await measureChannel(options)),
    ...(await measureWholeSend({ name: 'mail, not signed', mails, isSigned: false })),
    ...(await measureWholeSend({ name: 'mail, signed with RSA-2048', mails: signed, isSigned: true })),
  ],
  json,
)

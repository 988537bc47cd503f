// Every command, in the order of the help text.

import { appCommands } from './app.ts'
import type { CliCommand } from './command.ts'
import { dbCommands } from './db.ts'
import { deliveriesCommands } from './deliveries.ts'
import { doctorCommands } from './doctor.ts'
import { emailCommands } from './email.ts'
import { emailEventsCommands } from './email-events.ts'
import { emailProvidersCommands } from './email-providers.ts'
import { jobsCommands } from './jobs.ts'
import { keyCommands } from './key.ts'
import { orgCommands } from './org.ts'
import { sendingCommands } from './sending.ts'
import { sinkCommands } from './sink.ts'

export const commands: CliCommand[] = [
  ...orgCommands,
  ...appCommands,
  ...keyCommands,
  ...sendingCommands,
  ...emailCommands,
  ...deliveriesCommands,
  ...emailEventsCommands,
  ...emailProvidersCommands,
  ...jobsCommands,
  ...dbCommands,
  ...doctorCommands,
  ...sinkCommands,
]

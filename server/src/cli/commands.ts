// Every command, in the order in which help shows them.

import { appCommands } from './app.ts'
import type { Command } from './command.ts'
import { dbCommands } from './db.ts'
import { doctorCommands } from './doctor.ts'
import { jobsCommands } from './jobs.ts'
import { keyCommands } from './key.ts'
import { orgCommands } from './org.ts'

export const commands: Command[] = [
  ...orgCommands,
  ...appCommands,
  ...keyCommands,
  ...jobsCommands,
  ...dbCommands,
  ...doctorCommands,
]

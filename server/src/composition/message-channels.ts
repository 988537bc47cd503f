import { createEmailChannel } from '../messages/email/channel.ts'
import type { EmailPort } from '../messages/email/port.ts'
import type { MessageChannels } from '../messages/engine/channel.ts'
import { pushChannel } from '../messages/push/channel.ts'
import { smsChannel } from '../messages/sms/channel.ts'

export const createMessageChannels = (email: EmailPort): MessageChannels => ({
  push: pushChannel,
  sms: smsChannel,
  email: createEmailChannel(email),
})

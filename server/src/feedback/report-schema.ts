// The wire shapes of reports by devices.

import Type from 'typebox'

export const ReportPath = Type.Object({ message_id: Type.String({ format: 'uuid' }) })

const device = {
  app_id: Type.String({ format: 'uuid' }),
  player_id: Type.String({ format: 'uuid', description: 'The subscription that the message went to.' }),
  device_type: Type.Optional(Type.Unknown({ description: 'Not looked at: the subscription says it.' })),
}

export const ReceivedBody = Type.Object(device)
export const OpenedBody = Type.Object({
  ...device,
  opened: Type.Optional(Type.Unknown({ description: 'Only `true` says something.' })),
})

export const NotedAnswer = Type.Object({ success: Type.Boolean() })

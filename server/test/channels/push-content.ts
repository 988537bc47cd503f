import type { PushContent } from '../../src/channels/push/content.ts'

/** When the tests of push begin. */
export const START = '2030-01-01T09:00:00Z'

export const content = (changes: Partial<PushContent> = {}): PushContent => ({
  messageId: '11111111-1111-4111-8111-111111111111',
  expiresAt: new Date('2030-01-01T10:00:00Z'),
  priority: 10,
  title: 'Bells',
  body: 'They ring',
  ...changes,
})

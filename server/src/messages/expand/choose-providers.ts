// Chooses the provider for each type of subscription that a message can go to.

import { isPushType } from '../../users/subscriptions/reachable.ts'
import { type SubscriptionType, subscriptionTypes } from '../../users/subscriptions/subscription.ts'
import { type Provider, providerOf } from '../delivery.ts'
import type { Message } from '../message.ts'
import { NOT_CONFIGURED, NOT_SUPPORTED } from '../reasons.ts'
import type { ProviderChoice } from './insert-deliveries.ts'

const hasChannel: Record<Message['channel'], (type: SubscriptionType) => boolean> = {
  email: (type) => type === 'Email',
  sms: (type) => type === 'SMS',
  push: isPushType,
}

export function chooseProviders(
  { id, channel, options }: Pick<Message, 'id' | 'channel' | 'options'>,
  ready: ReadonlySet<Provider>,
): ProviderChoice[] {
  const types = subscriptionTypes.filter(hasChannel[channel])
  const wanted =
    channel === 'push' && options.platforms ? types.filter((type) => options.platforms?.includes(type)) : types
  return wanted.map((type) => {
    const provider = providerOf(type)
    if (!provider) return { messageId: id, type, provider: null, reason: NOT_SUPPORTED }
    return { messageId: id, type, provider, reason: ready.has(provider) ? null : NOT_CONFIGURED }
  })
}

// Everything that Liquid can access: the tags under their bare names, and the objects that the API documents.

import type { AppId, OrganizationId } from '../lib/ids.ts'
import { EXTERNAL_ID } from '../users/aliases/identity.ts'
import type { Subscription } from '../users/subscriptions/subscription.ts'
import type { User } from '../users/user.ts'
import type { LiquidScope } from './render/source.ts'
import type { TemplateId } from './template.ts'

/** All parts are required, so that a preview and the sent message see the same. Null stands for what does not exist. */
export type LiquidScopeParts = {
  /** Undefined when nothing is known about the recipient. */
  user: User | undefined
  /** The recipient of the message. */
  subscription: Subscription | undefined
  app: { id: AppId; name: string }
  organization: { id: OrganizationId; name: string }
  /** `dynamicContent` is shared by all recipients, so that it is sent to the renderer once for all of them. */
  template: { id: TemplateId | null; name: string | null; dynamicContent: Record<string, unknown> } | null
  message: { id: string | null; name: string | null; customData: object } | null
  journey: Record<string, unknown> | null
  unsubscribeToken: string | null
}

export function buildLiquidScope(parts: LiquidScopeParts): LiquidScope {
  const { user, subscription, template, message } = parts
  const externalId = user?.aliases.get(EXTERNAL_ID) ?? null
  const { tags, language } = user?.properties ?? { tags: {}, language: null }
  return {
    // Spread first, so that no tag can replace an object.
    ...tags,
    user: {
      tags,
      external_id: externalId,
      onesignal_id: user?.id ?? null,
      language,
      subscriptions: [...(user?.subscriptions.values() ?? [])].map(({ id, token }) => ({
        id,
        subscription_token: token,
      })),
    },
    subscription: {
      email: subscription?.type === 'Email' ? subscription.token : null,
      phone_number: subscription?.type === 'SMS' ? subscription.token : null,
      language: subscription?.language ?? language,
      external_id: externalId,
      unsubscribe_token: parts.unsubscribeToken,
    },
    app: { id: parts.app.id, name: parts.app.name },
    org: { id: parts.organization.id, name: parts.organization.name },
    template: { id: template?.id ?? null, name: template?.name ?? null },
    message: {
      id: message?.id ?? null,
      name: message?.name ?? null,
      template_id: template?.id ?? null,
      custom_data: message?.customData ?? {},
    },
    journey: parts.journey ?? {},
    dynamic_content: template?.dynamicContent ?? {},
  }
}

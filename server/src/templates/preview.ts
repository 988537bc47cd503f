// Previews a template, stored or not, as it would be rendered for a user.

import { appNotFound, invalid, userNotFound } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import { readUserRef } from '../users/aliases/identity.ts'
import type { User } from '../users/user.ts'
import { type ContentChannel, channelOf, readContent } from './content.ts'
import { sourcesFor } from './content-sources.ts'
import type { TemplatesContext } from './context.ts'
import { readDynamicContent } from './dynamic-content.ts'
import { findAppScope } from './find-app-scope.ts'
import { buildLiquidScope } from './liquid-scope.ts'
import { prepareContent } from './prepare-content.ts'
import { renderFailed } from './render/renderer.ts'
import type { PreviewBody, PreviewUnsavedBody } from './schema.ts'
import { findTemplate } from './store.ts'
import { type Template, type TemplateId, templateNotFound } from './template.ts'

export async function previewTemplate(ctx: TemplatesContext, appId: AppId, id: TemplateId, body: PreviewBody) {
  const template = await findTemplate(ctx.db, appId, id)
  if (!template) throw templateNotFound()
  return renderPreview(ctx, appId, template, body)
}

export async function previewUnsaved(ctx: TemplatesContext, appId: AppId, body: PreviewUnsavedBody) {
  const content = readContent(body)
  const dynamicContent = body.dynamic_content || null
  const emailHtml = await prepareContent(ctx.renderer, appId, content, dynamicContent)
  return renderPreview(ctx, appId, { id: null, name: body.name ?? null, content, emailHtml, dynamicContent }, body)
}

type PreviewedTemplate = Pick<Template, 'content' | 'emailHtml' | 'dynamicContent'> & {
  id: TemplateId | null
  name: string | null
}

async function renderPreview(ctx: TemplatesContext, appId: AppId, template: PreviewedTemplate, body: PreviewBody) {
  const user = await findPreviewUser(ctx, appId, body)
  const sender = await findAppScope(ctx.db, appId)
  if (!sender) throw appNotFound()
  const channel = channelOf(template.content)
  const subscription = firstSubscriptionOf(user, channel)
  const language = body.language ?? subscription?.language ?? user?.properties.language ?? 'en'
  const context = buildLiquidScope({
    user,
    subscription,
    ...sender,
    template: { id: template.id, name: template.name, dynamicContent: readDynamicContent(template.dynamicContent) },
    message: { id: null, name: null, customData: body.custom_data ?? {} },
    journey: body.journey ?? null,
    unsubscribeToken: null,
  })
  const sources = sourcesFor(template.content, template.emailHtml, language)
  const [result] = await ctx.renderer.render(appId, [{ template: sources, context }], ctx.now())
  if (!result?.ok) throw renderFailed(result as Exclude<typeof result, undefined | { ok: true }>)
  return { channel, language, rendered: result.texts }
}

/**
 * Runs before schema validation, so the body may be anything. A request with only half of an alias counts as naming a
 * user.
 */
export const namesUser = (body: unknown): boolean => {
  const { alias_label: label, alias_id: value } = (body ?? {}) as Partial<PreviewBody>
  return (label ?? value ?? null) !== null
}

async function findPreviewUser(
  { users }: TemplatesContext,
  appId: AppId,
  body: PreviewBody,
): Promise<User | undefined> {
  if (!namesUser(body)) return undefined
  const { alias_label: label, alias_id: value } = body
  if (typeof label !== 'string' || typeof value !== 'string')
    throw invalid('alias_label and alias_id name a user together: give both or neither', {
      field: typeof label === 'string' ? 'alias_id' : 'alias_label',
    })
  const user = await users.user(appId, readUserRef(label, value))
  if (!user) throw userNotFound()
  return user
}

/** The first subscription that a message of this channel could go to. */
function firstSubscriptionOf(user: User | undefined, channel: ContentChannel) {
  const isFit: Record<ContentChannel, (type: string) => boolean> = {
    email: (type) => type === 'Email',
    sms: (type) => type === 'SMS',
    push: (type) => type.endsWith('Push'),
  }
  return [...(user?.subscriptions.values() ?? [])].find(({ type }) => isFit[channel](type))
}

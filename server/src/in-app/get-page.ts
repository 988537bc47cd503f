// Returns the page of a variant to the device that shows it.

import type { Authority } from '../lib/authority.ts'
import type { AppId, SubscriptionId } from '../lib/ids.ts'
import type { Renderer } from '../templates/render/renderer.ts'
import { EXTERNAL_ID } from '../users/aliases/identity.ts'
import type { UserReader } from '../users/read.ts'
import { addBridge, buildPage } from './build-page.ts'
import type { InAppContext } from './context.ts'
import { type InAppMessageId, inAppMessageNotFound, type VariantId } from './message.ts'
import type { HtmlAnswer } from './schema.ts'
import { findPreviewedVariant, findShownVariant, type ShownVariant } from './store.ts'

/** The device that the page is for. A verified user's page never contains the tags of another user. */
export type Viewer = { subscriptionId: SubscriptionId; authority: Authority }

export async function getPage(
  ctx: InAppContext,
  appId: AppId,
  id: InAppMessageId,
  variantId: VariantId,
  viewer: Viewer | undefined,
): Promise<HtmlAnswer> {
  const shown = await findShownVariant(ctx.db, appId, { id, variantId, now: ctx.now() })
  if (!shown) throw inAppMessageNotFound()
  return htmlObject(shown, await personal(ctx, appId, shown, viewer))
}

/** Anybody who knows the id of a variant can preview it, whatever the state of its message. */
export async function getPreviewPage(
  ctx: InAppContext,
  appId: AppId,
  variantId: VariantId,
  viewer: Viewer | undefined,
): Promise<HtmlAnswer> {
  const shown = await findPreviewedVariant(ctx.db, appId, variantId)
  if (!shown) throw inAppMessageNotFound()
  return htmlObject(shown, await personal(ctx, appId, shown, viewer))
}

/** Fills in the tags of the user. When the user is unknown, the page itself fills in the tags that the SDK supplies. */
async function personal(
  { renderer, users, now }: { renderer: Renderer; users: UserReader; now: () => Date },
  appId: AppId,
  { content, displayLocation, hasLiquid }: ShownVariant,
  viewer: Viewer | undefined,
): Promise<string> {
  const source = buildPage(content, displayLocation)
  if (!hasLiquid || !viewer) return source
  const user = await users.user(appId, { subscriptionId: viewer.subscriptionId })
  if (!user) return source
  const { authority } = viewer
  if (authority.kind === 'verified' && user.aliases.get(EXTERNAL_ID) !== authority.externalId) return source
  const items = [{ template: { html: { kind: 'html' as const, text: source } }, context: user.properties.tags }]
  const [result] = await renderer.render(appId, items, now())
  return result?.ok ? (result.texts.html ?? source) : source
}

const htmlObject = (shown: ShownVariant, html: string): HtmlAnswer => ({
  html: addBridge(html, shown.displayLocation),
  ...(shown.displayDuration !== null && { display_duration: shown.displayDuration }),
  styles: { remove_height_margin: shown.removeHeightMargin, remove_width_margin: shown.removeWidthMargin },
})

// What SDKs in apps request and report. They have no key; see http/keyless-limiter.ts.

import type { AlsoNeeded, Call, Route, RouteAccess, RouteLimit } from '../http/route.ts'
import { route } from '../http/route.ts'
import { authorityOf } from '../lib/authority.ts'
import { invalidUuid } from '../lib/errors.ts'
import { isUuid, type SubscriptionId } from '../lib/ids.ts'
import type { InAppContext } from './context.ts'
import { getPage, getPreviewPage, type Viewer } from './get-page.ts'
import { listForDevice, listForDeviceOfUser } from './list-for-device.ts'
import { recordDeviceInteraction } from './record-interaction.ts'
import {
  AppQuery,
  ClickBody,
  DeviceAnswer,
  DeviceOfUserPath,
  DevicePath,
  HtmlAnswer,
  ImpressionBody,
  PageBody,
  PreviewQuery,
  ReportedAnswer,
  ReportPath,
  VariantPath,
} from './schema.ts'

type AppAccess = Extract<RouteAccess, { kind: 'app' }>

const access = (appIn: AppAccess['appIn'], more: Partial<AppAccess> = {}): AppAccess => ({
  kind: 'app',
  permission: 'messages',
  appIn,
  keyless: () => true,
  ...more,
})

/**
 * Content for a user reveals what is known about the user, so a key needs this permission as well. SDKs have no key, so
 * only the access rule of the route applies to them.
 */
const also: AlsoNeeded = { permission: 'users' }
const SUBSCRIPTION_HEADER = 'onesignal-subscription-id'
const alsoForViewer: AlsoNeeded = {
  permission: 'users',
  when: {
    reason: 'a page with the tags of a user',
    applies: (call) => call.header(SUBSCRIPTION_HEADER) !== undefined,
  },
}

/**
 * Requests occur whenever an app is opened or shows a message, so they have the limit of other writes, though some only
 * read.
 */
const limits: RouteLimit[] = [{ rule: 'write' }]

function readSubscriptionId(id: string): SubscriptionId {
  if (!isUuid(id)) throw invalidUuid('subscription_id', id)
  return id.toLowerCase()
}

/**
 * The user whose tags are filled into a page: that of the device named in the header, as Android's SDK sends it.
 * Without a verified user, no tags are filled in, and the page uses those that the SDK has.
 */
function viewerOf(call: Pick<Call, 'caller' | 'header'>): Viewer | undefined {
  const id = call.header(SUBSCRIPTION_HEADER)
  const authority = authorityOf(call.caller)
  return id === undefined || !isUuid(id) || authority.kind === 'device'
    ? undefined
    : { subscriptionId: id.toLowerCase(), authority }
}

export function inAppSdkRoutes(ctx: InAppContext): Route[] {
  const tag = 'In-app messages for SDKs'
  const ofReports = { tag, errors: 'messages' as const, access: access('body', { isUnproven: true }), limits }
  const ofPages = {
    tag,
    errors: 'messages' as const,
    access: access('query', { isUnproven: true, also: alsoForViewer }),
    limits,
  }
  return [
    route({
      operation: 'listInAppMessagesOfSubscription',
      method: 'GET',
      path: '/apps/:app_id/subscriptions/:subscription_id/iams',
      tag,
      errors: 'users',
      summary: 'In-app messages of a device',
      description: 'What is live now and meant for this subscription.',
      access: access('path', { also }),
      limits,
      params: DevicePath,
      answers: { 200: DeviceAnswer },
      async handle(call) {
        const id = readSubscriptionId(call.params.subscription_id)
        return { status: 200, body: await listForDevice(ctx, call.app.id, id, authorityOf(call.caller)) }
      },
    }),
    route({
      operation: 'listInAppMessagesOfUser',
      method: 'GET',
      path: '/apps/:app_id/users/by/:alias_label/:alias_id/subscriptions/:subscription_id/iams',
      tag,
      errors: 'users',
      summary: 'In-app messages of a device of a user',
      description: 'What SDKs call where the app demands proof of identity.',
      access: access('path', { also, keyless: ({ alias_label }) => isLabelOfSdks(alias_label) }),
      limits,
      params: DeviceOfUserPath,
      answers: { 200: DeviceAnswer },
      async handle(call) {
        const { alias_label: label, alias_id: value, subscription_id } = call.params
        const authority = authorityOf(call.caller)
        const id = readSubscriptionId(subscription_id)
        return { status: 200, body: await listForDeviceOfUser(ctx, call.app.id, { label, value }, id, authority) }
      },
    }),
    route({
      ...ofPages,
      operation: 'viewInAppMessageHtml',
      method: 'GET',
      path: '/in_app_messages/:in_app_message_id/variants/:variant_id/html',
      summary: 'Page of an in-app message',
      description:
        'With the header OneSignal-Subscription-Id and an identity token (or a key) the tags of that user are put in; otherwise the page does that.',
      params: VariantPath,
      query: AppQuery,
      answers: { 200: HtmlAnswer },
      async handle(call) {
        const { in_app_message_id: id, variant_id } = call.params
        return { status: 200, body: await getPage(ctx, call.app.id, id, variant_id, viewerOf(call)) }
      },
    }),
    route({
      ...ofPages,
      operation: 'previewInAppMessage',
      method: 'GET',
      path: '/in_app_messages/device_preview',
      summary: 'Page of a preview',
      description: '`preview_id` is the id of a variant, whatever the state of its message.',
      query: PreviewQuery,
      answers: { 200: HtmlAnswer },
      async handle(call) {
        const variantId = call.query.preview_id.toLowerCase()
        return { status: 200, body: await getPreviewPage(ctx, call.app.id, variantId, viewerOf(call)) }
      },
    }),
    route({
      ...ofReports,
      operation: 'reportInAppImpression',
      method: 'POST',
      path: '/in_app_messages/:in_app_message_id/impression',
      summary: 'Report that an in-app message was shown',
      params: ReportPath,
      body: ImpressionBody,
      answers: { 200: ReportedAnswer },
      handle: (call) => counted(call, 'impression', null),
    }),
    route({
      ...ofReports,
      operation: 'reportInAppClick',
      method: 'POST',
      path: '/in_app_messages/:in_app_message_id/click',
      summary: 'Report that an in-app message was clicked',
      params: ReportPath,
      body: ClickBody,
      answers: { 200: ReportedAnswer },
      handle: (call) => counted(call, 'click', call.body.click_id ?? null),
    }),
    route({
      ...ofReports,
      operation: 'reportInAppPageImpression',
      method: 'POST',
      path: '/in_app_messages/:in_app_message_id/pageImpression',
      summary: 'Report that a page of an in-app message was shown',
      params: ReportPath,
      body: PageBody,
      answers: { 200: ReportedAnswer },
      handle: (call) => counted(call, 'page', call.body.page_id ?? null),
    }),
  ]

  type ReportCall = Call<
    { in_app_message_id: string },
    Record<string, unknown>,
    { player_id: string; variant_id?: string | null }
  >

  async function counted(call: ReportCall, what: 'impression' | 'click' | 'page', target: string | null) {
    const { in_app_message_id: messageId } = call.params
    const { player_id, variant_id: variant = null } = call.body
    const given = { messageId, subscriptionId: player_id.toLowerCase(), what, variant, target }
    await recordDeviceInteraction(ctx, call.app.id, given, authorityOf(call.caller))
    return { status: 200, body: {} }
  }
}

const isLabelOfSdks = (label: string | undefined) => label === 'onesignal_id' || label === 'external_id'

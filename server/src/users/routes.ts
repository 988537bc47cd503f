import Type from 'typebox'
import type { Call, Route, RouteAccess, RouteLimit } from '../http/route.ts'
import { route } from '../http/route.ts'
import { type Authority, authorityOf } from '../lib/authority.ts'
import { invalidUuid } from '../lib/errors.ts'
import { isUuid, type SubscriptionId } from '../lib/ids.ts'
import { removeAlias, updateAliases } from './aliases/change.ts'
import { ONESIGNAL_ID, readUserRef, type UserRef } from './aliases/identity.ts'
import type { UsersContext } from './context.ts'
import { createdAnswer, createUser } from './create.ts'
import { deleteUser } from './delete.ts'
import { mayBeNamedBySdk, readTargetUser } from './devices/authorize.ts'
import { readInstallId } from './devices/install.ts'
import { signIn } from './devices/sign-in.ts'
import { limitSubjectOfToken, limitSubjectsOfNewUser, limitSubjectsOfSdk } from './limit-subjects.ts'
import { viewIdentity, viewIdentityBySubscription, viewUser, viewUserForDevice } from './read.ts'
import {
  AliasPath,
  AppPath,
  CreateUserBody,
  IdentityAnswer,
  IdentityBody,
  PropertiesAnswer,
  SubscriptionAnswer,
  SubscriptionBody,
  SubscriptionPath,
  UpdateUserBody,
  UserAnswer,
} from './schema.ts'
import {
  addSubscription,
  removeSubscription,
  transferSubscription,
  updateSubscription,
  updateSubscriptionByToken,
} from './subscriptions/change.ts'
import { readSelectedSubscription, updateUser } from './update.ts'

const byAliasPath = (params: Record<string, string>, hasToken: boolean) => mayBeNamedBySdk(params.alias_label, hasToken)
const always = () => true
const isSdk = ({ caller }: Pick<Call, 'caller'>) => caller.kind === 'sdk'

const access = (keyless?: (params: Record<string, string>, hasToken: boolean) => boolean): RouteAccess => ({
  kind: 'app',
  permission: 'users',
  appIn: 'path',
  ...(keyless && { keyless }),
})

const targetOf = ({ params, caller }: Pick<Call<{ alias_label: string; alias_id: string }>, 'params' | 'caller'>) =>
  readTargetUser(params.alias_label, params.alias_id, authorityOf(caller))

/** SDKs send this header with every request, filled with an id of their own until they know their subscription's. */
function selectedBy(call: Pick<Call, 'header'>, authority: Authority): SubscriptionId | undefined {
  const given = call.header('onesignal-subscription-id')
  return authority.kind === 'key' || isUuid(given ?? '') ? readSelectedSubscription(given) : undefined
}

const installOf = (call: Pick<Call, 'header'>, authority: Authority) =>
  readInstallId(call.header('onesignal-install-id'), authority)

/**
 * Mobile SDKs fetch in-app messages only after a write has returned a token to read it back with. Every read here sees
 * all acknowledged writes, so the token holds only the time of the write; a later token compares as the larger text.
 */
const seenBy = <Body extends object>({ caller, now }: Pick<Call, 'caller' | 'now'>, body: Body) =>
  caller.kind === 'sdk' ? { ...body, ryw_token: String(now.getTime()).padStart(16, '0') } : body

function readSubscriptionId(id: string): SubscriptionId {
  if (!isUuid(id)) throw invalidUuid('subscription_id', id)
  return id.toLowerCase()
}

export function userRoutes(ctx: UsersContext): Route[] {
  const { change, newId, reader, concealTiming } = ctx
  const byAlias = (subjectOf: RouteLimit['subjects']): RouteLimit[] => [
    { rule: 'users.write' },
    { rule: 'users.one', subjects: (call) => (isSdk(call) ? limitSubjectsOfSdk(call) : (subjectOf?.(call) ?? [])) },
  ]
  const writesUser = byAlias(({ app, params }) => {
    const { alias_label: label = '', alias_id: value = '' } = params
    if (label === ONESIGNAL_ID && !isUuid(value)) return []
    return ctx.findSubjects(app.id, readUserRef(label, value))
  })
  const writesSubscription = byAlias(({ params }) => [(params.subscription_id ?? '').toLowerCase()])
  // SDKs view their user at every start; that must not use up the few views that a back end has.
  const views: RouteLimit[] = [
    { rule: 'view', when: (call) => !isSdk(call) },
    { rule: 'users.write', counter: 'sdk-views', when: isSdk },
  ]
  const common = { errors: 'users' as const }

  const setAliases = async (
    {
      app,
      caller,
      body,
    }: Pick<Call<unknown, unknown, { identity: Record<string, string> }>, 'app' | 'caller' | 'body'>,
    target: UserRef | { subscriptionId: SubscriptionId },
  ) => {
    const authority = authorityOf(caller)
    const update = () => updateAliases(change, app.id, target, body.identity, authority)
    return { status: 200, body: await (authority.kind === 'device' ? concealTiming(update) : update()) }
  }

  return [
    route({
      ...common,
      operation: 'createUser',
      method: 'POST',
      path: '/apps/:app_id/users',
      tag: 'Users',
      summary: 'Create user',
      description:
        'Creates a user, or changes the one that the given aliases (or, without aliases, the given tokens) belong to: 201 or 202. Subscriptions that exist are changed or transferred to the user.',
      access: access(always),
      limits: byAlias(({ app, body }) => limitSubjectsOfNewUser(ctx.findSubjects, app.id, body)),
      params: AppPath,
      body: CreateUserBody,
      answers: { 201: UserAnswer, 202: UserAnswer },
      async handle(call) {
        const authority = authorityOf(call.caller)
        const installId = installOf(call, authority)
        if (authority.kind === 'device') {
          const { status, body } = await concealTiming(() => signIn(ctx, call.app.id, call.body, installId))
          return { status, body: seenBy(call, body) }
        }
        const created = await createUser(ctx, call.app.id, call.body, authority, installId)
        return { status: created.isNew ? 201 : 202, body: seenBy(call, createdAnswer(call.app.id, created)) }
      },
    }),
    route({
      ...common,
      operation: 'viewUser',
      method: 'GET',
      path: '/apps/:app_id/users/by/:alias_label/:alias_id',
      tag: 'Users',
      summary: 'View user',
      access: access(byAliasPath),
      limits: views,
      params: AliasPath,
      answers: { 200: UserAnswer },
      async handle(call) {
        const ref = targetOf(call)
        const authority = authorityOf(call.caller)
        if (authority.kind !== 'device')
          return { status: 200, body: await viewUser(reader, call.app.id, ref, authority) }
        const selected = selectedBy(call, authority)
        return { status: 200, body: await viewUserForDevice(reader, call.app.id, ref, selected, call.now) }
      },
    }),
    route({
      ...common,
      operation: 'updateUser',
      method: 'PATCH',
      path: '/apps/:app_id/users/by/:alias_label/:alias_id',
      tag: 'Users',
      summary: 'Update user',
      description:
        'Changes user-level properties. Deltas are added to the stored values; with the header OneSignal-Subscription-Id sessions are added to that subscription too. At most 100 property updates per request. Answers all stored properties.',
      access: access(byAliasPath),
      limits: writesUser,
      params: AliasPath,
      body: UpdateUserBody,
      answers: { 202: PropertiesAnswer },
      async handle(call) {
        const ref = targetOf(call)
        const authority = authorityOf(call.caller)
        const selected = selectedBy(call, authority)
        const body = await updateUser(change, call.app.id, ref, call.body, selected, authority)
        return { status: 202, body: seenBy(call, body) }
      },
    }),
    route({
      ...common,
      operation: 'deleteUser',
      method: 'DELETE',
      path: '/apps/:app_id/users/by/:alias_label/:alias_id',
      tag: 'Users',
      summary: 'Delete user',
      description: 'Removes the user with its aliases, subscriptions and history. Its aliases are free again.',
      access: access(),
      limits: writesUser,
      params: AliasPath,
      answers: { 202: IdentityAnswer },
      async handle(call) {
        const ref = targetOf(call)
        return { status: 202, body: await deleteUser(change, call.app.id, ref, call) }
      },
    }),
    route({
      ...common,
      operation: 'viewIdentity',
      method: 'GET',
      path: '/apps/:app_id/users/by/:alias_label/:alias_id/identity',
      tag: 'Identity',
      summary: 'View user identity',
      access: access(byAliasPath),
      limits: views,
      params: AliasPath,
      answers: { 200: IdentityAnswer },
      async handle(call) {
        const ref = targetOf(call)
        return { status: 200, body: await viewIdentity(reader, call.app.id, ref, authorityOf(call.caller)) }
      },
    }),
    route({
      ...common,
      operation: 'updateAliases',
      method: 'PATCH',
      path: '/apps/:app_id/users/by/:alias_label/:alias_id/identity',
      tag: 'Identity',
      summary: 'Create or update alias',
      description:
        'Adds or replaces aliases, all of them or none. An alias that another user holds is a 409 with every such label in `meta`.',
      access: access(byAliasPath),
      limits: writesUser,
      params: AliasPath,
      body: IdentityBody,
      answers: { 200: IdentityAnswer },
      async handle(call) {
        const ref = targetOf(call)
        return setAliases(call, ref)
      },
    }),
    route({
      ...common,
      operation: 'deleteAlias',
      method: 'DELETE',
      path: '/apps/:app_id/users/by/:alias_label/:alias_id/identity/:alias_label_to_delete',
      tag: 'Identity',
      summary: 'Delete alias',
      access: access(byAliasPath),
      limits: writesUser,
      params: Type.Object({ ...AliasPath.properties, alias_label_to_delete: Type.String() }),
      answers: { 200: IdentityAnswer },
      async handle(call) {
        const ref = targetOf(call)
        const label = call.params.alias_label_to_delete
        return { status: 200, body: await removeAlias(change, call.app.id, ref, label, authorityOf(call.caller)) }
      },
    }),
    route({
      ...common,
      operation: 'viewIdentityBySubscription',
      method: 'GET',
      path: '/apps/:app_id/subscriptions/:subscription_id/user/identity',
      tag: 'Identity',
      summary: 'View user identity by subscription',
      access: access(always),
      limits: views,
      params: SubscriptionPath,
      answers: { 200: IdentityAnswer },
      async handle(call) {
        const id = readSubscriptionId(call.params.subscription_id)
        const authority = authorityOf(call.caller)
        return { status: 200, body: await viewIdentityBySubscription(reader, call.app.id, id, authority) }
      },
    }),
    route({
      ...common,
      operation: 'updateAliasesBySubscription',
      method: 'PATCH',
      path: '/apps/:app_id/subscriptions/:subscription_id/user/identity',
      tag: 'Identity',
      summary: 'Create or update alias by subscription',
      access: access(always),
      limits: writesSubscription,
      params: SubscriptionPath,
      body: IdentityBody,
      answers: { 200: IdentityAnswer },
      async handle(call) {
        const ref = { subscriptionId: readSubscriptionId(call.params.subscription_id) }
        return setAliases(call, ref)
      },
    }),
    route({
      ...common,
      operation: 'createSubscription',
      method: 'POST',
      path: '/apps/:app_id/users/by/:alias_label/:alias_id/subscriptions',
      tag: 'Subscriptions',
      summary: 'Create subscription',
      description: '201 for a new one; 202 where it existed and was changed or transferred to this user.',
      access: access(byAliasPath),
      limits: writesUser,
      params: AliasPath,
      body: SubscriptionBody,
      answers: { 201: SubscriptionAnswer, 202: SubscriptionAnswer },
      async handle(call) {
        const ref = targetOf(call)
        const draft = call.body.subscription
        const authority = authorityOf(call.caller)
        const installId = installOf(call, authority)
        const added = await addSubscription(change, newId, call.app.id, ref, draft, authority, installId)
        const { isNew, subscription } = added
        // iOS looks for its token inside the subscription.
        return { status: isNew ? 201 : 202, body: seenBy(call, { subscription: seenBy(call, subscription) }) }
      },
    }),
    route({
      ...common,
      operation: 'updateSubscription',
      method: 'PATCH',
      path: '/apps/:app_id/subscriptions/:subscription_id',
      tag: 'Subscriptions',
      summary: 'Update subscription',
      access: access(always),
      limits: writesSubscription,
      params: SubscriptionPath,
      body: SubscriptionBody,
      answers: { 200: SubscriptionAnswer },
      async handle(call) {
        const id = readSubscriptionId(call.params.subscription_id)
        const authority = authorityOf(call.caller)
        const installId = installOf(call, authority)
        const body = await updateSubscription(change, call.app.id, id, call.body.subscription, authority, installId)
        return { status: 200, body: seenBy(call, body) }
      },
    }),
    route({
      ...common,
      operation: 'updateSubscriptionByToken',
      method: 'PATCH',
      path: '/apps/:app_id/subscriptions_by_token/:token_type/:token',
      tag: 'Subscriptions',
      summary: 'Update subscription by token',
      access: access(),
      limits: byAlias(({ params }) => [limitSubjectOfToken(params.token_type ?? '', params.token ?? '')]),
      params: Type.Object({ app_id: Type.String(), token_type: Type.String(), token: Type.String() }),
      body: SubscriptionBody,
      answers: { 202: SubscriptionAnswer },
      async handle({ app, params, body }) {
        const { token_type, token } = params
        return {
          status: 202,
          body: await updateSubscriptionByToken(change, app.id, token_type, token, body.subscription),
        }
      },
    }),
    route({
      ...common,
      operation: 'deleteSubscription',
      method: 'DELETE',
      path: '/apps/:app_id/subscriptions/:subscription_id',
      tag: 'Subscriptions',
      summary: 'Delete subscription',
      access: access(always),
      limits: writesSubscription,
      params: SubscriptionPath,
      answers: { 202: Type.Object({}) },
      async handle(call) {
        const id = readSubscriptionId(call.params.subscription_id)
        await removeSubscription(change, call.app.id, id, authorityOf(call.caller))
        return { status: 202, body: {} }
      },
    }),
    route({
      ...common,
      operation: 'transferSubscription',
      method: 'PATCH',
      path: '/apps/:app_id/subscriptions/:subscription_id/owner',
      tag: 'Subscriptions',
      summary: 'Transfer subscription',
      description: 'To the user that owns the one alias in the body. Answers the identity of the new owner.',
      access: access(always),
      limits: writesSubscription,
      params: SubscriptionPath,
      body: IdentityBody,
      answers: { 200: IdentityAnswer },
      async handle(call) {
        const id = readSubscriptionId(call.params.subscription_id)
        const authority = authorityOf(call.caller)
        const transfer = () => transferSubscription(change, newId, call.app.id, id, call.body.identity, authority)
        return { status: 200, body: await (authority.kind === 'device' ? concealTiming(transfer) : transfer()) }
      },
    }),
  ]
}

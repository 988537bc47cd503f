import type { Route, RouteAccess } from '../../http/route.ts'
import { route } from '../../http/route.ts'
import { authorityOf } from '../../lib/authority.ts'
import type { ActivitiesContext } from './context.ts'
import {
  ActivityPath,
  ActivityTokenBody,
  ActivityTokenPath,
  ClickBody,
  Nothing,
  StartActivityBody,
  StartedAnswer,
  TokenBody,
  TypePath,
  TypeTokenPath,
  UpdateActivityBody,
  UpdatedAnswer,
} from './schema.ts'
import { startActivity, updateActivity } from './send-activity.ts'
import { checkOwner, registerToken, removeToken, tokenRequired } from './tokens.ts'

const access: RouteAccess = { kind: 'app', permission: 'messages', appIn: 'path' }
/** A token belongs to a subscription, so its routes need the permission for users. */
const forSdks: RouteAccess = { kind: 'app', permission: 'users', appIn: 'path', keyless: () => true }

const replayed = (isReplay: boolean) => (isReplay ? { headers: { 'idempotent-replayed': 'true' } } : {})

export function activityRoutes(ctx: ActivitiesContext): Route[] {
  const common = { errors: 'messages' as const, tag: 'Live activities' }
  const sends = { ...common, access, limits: [{ rule: 'messages' }] }
  const ofSdks = { ...common, access: forSdks, limits: [{ rule: 'users.write' }], answers: { 200: Nothing } }
  const done = { status: 200, body: {} }

  return [
    route({
      ...sends,
      operation: 'startLiveActivity',
      method: 'POST',
      path: '/apps/:app_id/activities/activity/:activity_type',
      summary: 'Start a live activity',
      description:
        'On the devices of these recipients that have told a token for this type of activity. Answers the id of the message.',
      params: TypePath,
      body: StartActivityBody,
      maxBodyBytes: 5 * 1_048_576,
      answers: { 201: StartedAnswer },
      async handle({ app, params, body }) {
        const { id, isReplay } = await startActivity(ctx, app.id, params.activity_type, body)
        return { status: 201, body: { notification_id: id }, ...replayed(isReplay) }
      },
    }),
    route({
      ...sends,
      operation: 'updateLiveActivity',
      method: 'POST',
      path: '/apps/:app_id/live_activities/:activity_id/notifications',
      summary: 'Update or end a live activity',
      description: 'On all devices that show it.',
      params: ActivityPath,
      body: UpdateActivityBody,
      answers: { 200: UpdatedAnswer },
      async handle({ app, params, body }) {
        const { id, isReplay } = await updateActivity(ctx, app.id, params.activity_id, body)
        return { status: 200, body: { id }, ...replayed(isReplay) }
      },
    }),
    route({
      ...ofSdks,
      operation: 'enterLiveActivity',
      method: 'POST',
      path: '/apps/:app_id/live_activities/:activity_id/token',
      summary: 'Register the token of a running live activity',
      params: ActivityPath,
      body: TokenBody,
      async handle({ app, params, body, caller }) {
        const key = { purpose: 'update' as const, name: params.activity_id }
        const token = { ...key, subscriptionId: body.subscription_id.toLowerCase(), token: body.push_token }
        await registerToken(ctx, app.id, token, authorityOf(caller))
        return done
      },
    }),
    route({
      ...ofSdks,
      operation: 'exitLiveActivity',
      method: 'DELETE',
      path: '/apps/:app_id/live_activities/:activity_id/token/:subscription_id',
      summary: 'Remove the token of a running live activity',
      params: ActivityTokenPath,
      async handle({ app, params, caller }) {
        const key = { purpose: 'update' as const, name: params.activity_id, subscriptionId: params.subscription_id }
        await removeToken(ctx, app.id, key, authorityOf(caller))
        return done
      },
    }),
    route({
      ...ofSdks,
      operation: 'setStartToken',
      method: 'PUT',
      path: '/apps/:app_id/activities/tokens/start/:activity_type/subscriptions/:subscription_id',
      summary: 'Register the token by which a type of live activity is started',
      params: TypeTokenPath,
      body: ActivityTokenBody,
      async handle({ app, params, body, caller }) {
        const key = { purpose: 'start' as const, name: params.activity_type, subscriptionId: params.subscription_id }
        await registerToken(ctx, app.id, { ...key, token: tokenIn(body) }, authorityOf(caller))
        return done
      },
    }),
    route({
      ...ofSdks,
      operation: 'removeStartToken',
      method: 'DELETE',
      path: '/apps/:app_id/activities/tokens/start/:activity_type/subscriptions/:subscription_id',
      summary: 'Remove the token by which a type of live activity is started',
      params: TypeTokenPath,
      async handle({ app, params, caller }) {
        const key = { purpose: 'start' as const, name: params.activity_type, subscriptionId: params.subscription_id }
        await removeToken(ctx, app.id, key, authorityOf(caller))
        return done
      },
    }),
    route({
      ...ofSdks,
      operation: 'setUpdateToken',
      method: 'PUT',
      path: '/apps/:app_id/activities/tokens/update/:activity_id/subscriptions/:subscription_id',
      summary: 'Register the token of a running live activity (newer SDKs)',
      params: ActivityTokenPath,
      body: ActivityTokenBody,
      async handle({ app, params, body, caller }) {
        const key = { purpose: 'update' as const, name: params.activity_id, subscriptionId: params.subscription_id }
        await registerToken(ctx, app.id, { ...key, token: tokenIn(body) }, authorityOf(caller))
        return done
      },
    }),
    route({
      ...ofSdks,
      operation: 'removeUpdateToken',
      method: 'DELETE',
      path: '/apps/:app_id/activities/tokens/update/:activity_id/subscriptions/:subscription_id',
      summary: 'Remove the token of a running live activity (newer SDKs)',
      params: ActivityTokenPath,
      async handle({ app, params, caller }) {
        const key = { purpose: 'update' as const, name: params.activity_id, subscriptionId: params.subscription_id }
        await removeToken(ctx, app.id, key, authorityOf(caller))
        return done
      },
    }),
    // SDKs use different methods for this request.
    ...(
      [
        ['PUT', 'trackActivityClick'],
        ['POST', 'trackActivityClickByPost'],
      ] as const
    ).map(([method, operation]) =>
      route({
        ...ofSdks,
        operation,
        method,
        path: '/apps/:app_id/activities/clicks/track/:activity_type/subscriptions/:subscription_id',
        summary: 'Somebody pressed a live activity',
        description:
          'Counted once for each subscription of the message that is named. A message that did not go there is answered alike.',
        params: TypeTokenPath,
        body: ClickBody,
        async handle({ app, params, body, caller }) {
          const subscriptionId = params.subscription_id
          await checkOwner(ctx, app.id, { subscriptionId }, authorityOf(caller))
          const messageId = body.notification_id?.toLowerCase()
          if (messageId !== undefined) await ctx.recordFeedback(app.id, { kind: 'clicked', messageId, subscriptionId })
          return done
        },
      }),
    ),
  ]
}

function tokenIn({ activity_token, token }: { activity_token?: string; token?: string }): string {
  const given = activity_token ?? token
  if (given === undefined) throw tokenRequired()
  return given
}

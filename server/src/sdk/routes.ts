import Type from 'typebox'
import { JSON_TYPE } from '../http/answer.ts'
import { unlessKnown } from '../http/etag.ts'
import { type Answer, type Call, type Route, route } from '../http/route.ts'
import type { SdkContext } from './context.ts'
import { requirePublicApp } from './find-app.ts'
import { asScript, readCallback } from './jsonp.ts'
import { androidParams, iosParams } from './mobile-params.ts'
import {
  AndroidParamsAnswer,
  AppPath,
  CallbackQuery,
  FeaturesAnswer,
  FeaturesPath,
  IosParamsAnswer,
  WebConfigAnswer,
} from './schema.ts'
import { readWebConfig } from './web-config.ts'

/** An SDK need not fetch this again on every page; a change reaches all clients within a minute. */
const CACHED = { 'cache-control': 'public, max-age=60' }

export function sdkRoutes(ctx: SdkContext): Route[] {
  const shared = {
    tag: 'SDKs',
    errors: 'apps' as const,
    access: { kind: 'public', isCounted: true } as const,
    limits: [],
  }
  const cachedJson = (call: Pick<Call, 'header'>, body: object): Answer =>
    unlessKnown(call, {
      status: 200,
      body: JSON.stringify(body),
      headers: { 'content-type': JSON_TYPE, ...CACHED },
    })

  return [
    route({
      ...shared,
      operation: 'getWebConfig',
      method: 'GET',
      path: '/sync/:app_id/web',
      summary: 'Configuration for web SDKs',
      description:
        'Answers 200 also where there is nothing to configure, with `success: false` and a `code`. With `callback` the answer is a script (`application/javascript`) that calls this function with the same object. Answers 304 to a matching If-None-Match.',
      params: AppPath,
      query: CallbackQuery,
      answers: { 200: WebConfigAnswer },
      async handle(call) {
        const callback = call.query.callback === undefined ? undefined : readCallback(call.query.callback)
        const config = await readWebConfig(ctx, call.params.app_id)
        if (callback === undefined) return cachedJson(call, config)
        return unlessKnown(call, {
          status: 200,
          body: asScript(callback, JSON.stringify(config)),
          headers: {
            'content-type': 'application/javascript; charset=utf-8',
            'x-content-type-options': 'nosniff',
            ...CACHED,
          },
        })
      },
    }),
    route({
      ...shared,
      operation: 'getAndroidParams',
      method: 'GET',
      path: '/apps/:app_id/android_params.js',
      summary: 'Configuration for Android SDKs',
      description: 'Answers 304 to a matching If-None-Match.',
      params: AppPath,
      answers: { 200: AndroidParamsAnswer },
      handle: async (call) => cachedJson(call, androidParams(await requirePublicApp(ctx, call.params.app_id))),
    }),
    route({
      ...shared,
      operation: 'getIosParams',
      method: 'GET',
      path: '/apps/:app_id/ios_params.js',
      summary: 'Configuration for iOS SDKs',
      description: 'Answers 304 to a matching If-None-Match.',
      params: AppPath,
      answers: { 200: IosParamsAnswer },
      handle: async (call) => cachedJson(call, iosParams(await requirePublicApp(ctx, call.params.app_id))),
    }),
    route({
      ...shared,
      operation: 'getSdkFeatures',
      method: 'GET',
      path: '/apps/:app_id/sdk/features/:platform/:sdk_version',
      summary: 'Experiments of SDKs',
      description: 'Names those that are switched on; this server switches none on.',
      params: FeaturesPath,
      answers: { 200: FeaturesAnswer },
      async handle(call) {
        await requirePublicApp(ctx, call.params.app_id)
        return cachedJson(call, { features: [] })
      },
    }),
    route({
      ...shared,
      access: { kind: 'public' },
      operation: 'takeSdkLog',
      method: 'POST',
      path: '/sdk/log',
      summary: 'Telemetry of SDKs',
      description: 'What SDKs report about themselves is thanked for and dropped unread.',
      answers: { 200: Type.Object({}) },
      handle: () => ({ status: 200, body: {} }),
    }),
  ]
}

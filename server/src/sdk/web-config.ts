// What a web SDK fetches first: whether the app exists, and how its website is configured.

import { withVapidPair } from '../apps/credentials/vapid.ts'
import type { SdkContext } from './context.ts'
import { findPublicApp } from './find-app.ts'
import { OUTCOMES } from './outcomes.ts'
import type { WebConfigAnswer } from './schema.ts'

export async function readWebConfig(ctx: SdkContext, appId: string): Promise<WebConfigAnswer> {
  const found = await findPublicApp(ctx, appId)
  if (!found) return { success: false, code: 1, message: 'App not found' }
  const app = await withVapidPair(ctx, found)
  const { site_name: name, chrome_web_origin, safari_site_origin } = app.pushSettings
  const origin = chrome_web_origin ?? safari_site_origin
  // Includes the key, which is all that subscribing needs, so that a site can be tried before anything is configured.
  if (name === undefined || origin === undefined)
    return {
      success: false,
      code: 2,
      message: 'The app is not configured for web push: set site_name, and chrome_web_origin or safari_site_origin',
      app_id: app.id,
      config: { vapid_public_key: app.vapidPublicKey },
    }
  return {
    success: true,
    version: 2,
    app_id: app.id,
    features: {
      restrict_origin: { enable: false },
      metrics: { enable: false, mixpanel_reporting_token: '' },
      web_on_focus_enabled: true,
      session_threshold: 30,
      enable_on_session: true,
      receive_receipts_enable: true,
    },
    config: {
      origin,
      autoResubscribe: true,
      siteInfo: {
        name,
        origin,
        proxyOrigin: null,
        defaultIconUrl: app.pushSettings.chrome_web_default_notification_icon ?? null,
        proxyOriginEnabled: false,
      },
      // The page decides when to ask for permission; the SDK shows nothing by itself.
      integration: { kind: 'custom' },
      staticPrompts: PROMPTS,
      webhooks: { enable: false },
      serviceWorker: { path: '/', workerName: 'OneSignalSDKWorker.js', registrationScope: '/' },
      welcomeNotification: { enable: false, url: '', title: '', message: '', urlEnabled: false },
      notificationBehavior: { click: { match: 'exact', action: 'navigate' }, display: { persist: false } },
      vapid_public_key: app.vapidPublicKey,
      // Firefox uses this name, because the original service once had a separate key for it.
      onesignal_vapid_public_key: app.vapidPublicKey,
      ...(app.pushSettings.safari_push_id !== undefined && { safari_web_id: app.pushSettings.safari_push_id }),
      subdomain: null,
      outcomes: OUTCOMES,
    },
    generated_at: Math.floor(app.updatedAt.getTime() / 1000),
  }
}

/** SDKs read these fields without checking whether they exist; all prompts are switched off. */
const PROMPTS = {
  native: { enabled: false, autoPrompt: false },
  bell: {
    enabled: false,
    size: 'medium',
    color: { main: '', accent: '' },
    dialog: {
      main: { title: '', subscribeButton: '', unsubscribeButton: '' },
      blocked: { title: '', message: '' },
    },
    offset: { left: 0, right: 0, bottom: 0 },
    message: { subscribing: '', unsubscribing: '' },
    tooltip: { blocked: '', subscribed: '', unsubscribed: '' },
    location: 'bottom-right',
    hideWhenSubscribed: false,
    customizeTextEnabled: false,
  },
  slidedown: { prompts: [] },
  fullscreen: {
    enabled: false,
    autoPrompt: false,
    title: '',
    message: '',
    caption: '',
    acceptButton: '',
    cancelButton: '',
    actionMessage: '',
  },
  customlink: {
    enabled: false,
    style: 'button',
    size: 'medium',
    color: { button: '', text: '' },
    text: { subscribe: '', unsubscribe: '', explanation: '' },
    unsubscribeEnabled: false,
  },
}

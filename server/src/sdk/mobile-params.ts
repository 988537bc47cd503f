// What mobile SDKs fetch when an app starts.

import type { AppOverview } from '../apps/store.ts'
import { OUTCOMES } from './outcomes.ts'

const common = {
  fba: false,
  receive_receipts_enable: true,
  location_shared: true,
  requires_user_privacy_consent: false,
  outcomes: OUTCOMES,
}

export const androidParams = ({ pushSettings, identityRequired }: AppOverview) => ({
  ...common,
  ...(pushSettings.fcm_sender_id !== undefined && { android_sender_id: pushSettings.fcm_sender_id }),
  enterp: false,
  jwt_required: identityRequired,
  // The same setting under its older name, for SDKs of a year ago.
  require_ident_auth: identityRequired,
  chnl_lst: [],
  restore_ttl_filter: true,
  clear_group_on_summary_click: true,
  disable_gms_missing_prompt: false,
  unsubscribe_on_notifications_disabled: true,
  logging_config: { log_level: 'NONE' },
})

export const iosParams = ({ identityRequired }: AppOverview) => ({
  ...common,
  uses_provisional_auth: false,
  jwt_required: identityRequired,
  require_email_auth: false,
  require_sms_auth: false,
  require_user_id_auth: identityRequired,
})

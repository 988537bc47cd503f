// Credentials with which an app sends to a box, in the form in which a customer would set them. The box accepts all
// credentials; these only have to be well-formed.

import { generateKeyPairSync, type KeyObject } from 'node:crypto'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const pem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString()

/** An account that can send through a box, like any other account. */
export const twilio = { accountSid: `AC${'0'.repeat(32)}`, authToken: '0'.repeat(32), from: '+15005550006' }

export const smsSettings = {
  kind: 'twilio' as const,
  account_sid: twilio.accountSid,
  auth_token: twilio.authToken,
  from: twilio.from,
}

/** Values by which the credentials from this file can be recognized. */
export const marks = {
  apnsKeyId: 'SINKKEY001',
  fcmProject: 'sink',
  huaweiAppId: '100000001',
  admClientId: 'amzn1.application-oa2-client.sink',
  wnsPackageSid: 'ms-app://s-1-15-2-0',
  smsAccount: twilio.accountSid,
}

export const newAppSettings = () => ({
  fcm_v1_service_account_json: base64(
    JSON.stringify({
      type: 'service_account',
      project_id: marks.fcmProject,
      private_key: pem(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey),
      client_email: 'sink@sink.iam.gserviceaccount.com',
      token_uri: 'https://oauth2.googleapis.com/token',
    }),
  ),
  apns_p8: base64(pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)),
  apns_key_id: marks.apnsKeyId,
  apns_team_id: 'SINKTEAM01',
  apns_bundle_id: 'com.example.sink',
  huawei_app_id: marks.huaweiAppId,
  huawei_app_secret: '0'.repeat(32),
  huawei_package_name: 'com.example.sink',
  adm_client_id: marks.admClientId,
  adm_client_secret: '0'.repeat(32),
  wns_package_sid: marks.wnsPackageSid,
  wns_client_secret: '0'.repeat(32),
})

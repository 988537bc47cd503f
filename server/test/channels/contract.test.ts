import { describeContract } from './contract.ts'
import * as adm from './subjects/adm.ts'
import * as apns from './subjects/apns.ts'
import * as fcm from './subjects/fcm.ts'
import * as huawei from './subjects/huawei.ts'
import * as smpp from './subjects/smpp.ts'
import * as smtp from './subjects/smtp.ts'
import * as twilio from './subjects/twilio.ts'
import * as webPush from './subjects/web-push.ts'
import * as webhook from './subjects/webhook.ts'
import * as wns from './subjects/wns.ts'

describeContract('web push', webPush.troubles, webPush.start)
describeContract('APNs', apns.troubles, apns.start)
describeContract('FCM', fcm.troubles, fcm.start)
describeContract('Huawei', huawei.troubles, huawei.start)
describeContract('ADM', adm.troubles, adm.start)
describeContract('WNS', wns.troubles, wns.start)
describeContract('Twilio', twilio.troubles, twilio.start)
describeContract('SMPP', smpp.troubles, smpp.start)
describeContract('SMTP through a relay', smtp.troubles, smtp.startRelay)
describeContract('SMTP to the hosts', smtp.troubles, smtp.startDirect)
describeContract('the webhook', webhook.troubles, webhook.start)

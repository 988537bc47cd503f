// Which answers hold something of users, and what a key needs to get them. The rule: what is known of a user (tags, properties,
// addresses, other subscriptions, events, membership) needs `users`, whatever else the operation is about. Ids of the recipients of a
// message and what became of it for each belong to the message.

import type { Permission } from '../../src/lib/permissions.ts'

type Shown = { needs: readonly Permission[]; shows: string; only?: string }

const USERS = ['users'] as const

export const USER_DATA: Record<string, Shown> = {
  // Rendered for somebody.
  previewTemplate: { needs: ['templates', 'users'], shows: 'all that Liquid sees', only: 'a preview as a user' },
  previewUnsavedTemplate: { needs: ['templates', 'users'], shows: 'all that Liquid sees', only: 'a preview as a user' },
  viewInAppMessageHtml: { needs: ['messages', 'users'], shows: 'tags', only: 'a page with the tags of a user' },
  previewInAppMessage: { needs: ['messages', 'users'], shows: 'tags', only: 'a page with the tags of a user' },
  listInAppMessagesOfSubscription: { needs: ['messages', 'users'], shows: 'which audiences a device is in' },
  listInAppMessagesOfUser: { needs: ['messages', 'users'], shows: 'which audiences a device is in' },
  listCaughtMail: { needs: ['messages', 'users'], shows: 'addresses' },
  viewCaughtMail: { needs: ['messages', 'users'], shows: 'what was rendered for the recipient' },
  emptyMailbox: { needs: ['messages', 'users'], shows: 'how many mails there were' },
  // Explained.
  explainMessage: {
    needs: ['messages', 'users'],
    shows: 'all subscriptions of a user, whether an audience holds them',
  },
  explainSegment: { needs: USERS, shows: 'values that filters compare' },
  traceJourneyUser: { needs: ['journeys:view', 'users'], shows: 'what a user went through' },
  // Listed and exported.
  getSegmentMembers: { needs: USERS, shows: 'who is in a segment' },
  previewSegment: { needs: USERS, shows: 'who would be in a segment' },
  exportSubscriptions: { needs: USERS, shows: 'everything' },
  listEmailSuppressions: { needs: ['messages', 'users'], shows: 'addresses' },
  listPlayers: { needs: USERS, shows: 'everything' },
  // Sent to an address that the caller chooses.
  createJourneyWebhook: { needs: ['journeys:edit', 'users'], shows: 'identity and tags, to its address' },
  updateJourneyWebhook: { needs: ['journeys:edit', 'users'], shows: 'identity and tags, to its address' },
  // Users themselves.
  viewUser: { needs: USERS, shows: 'everything' },
  viewIdentity: { needs: USERS, shows: 'aliases' },
  viewIdentityBySubscription: { needs: USERS, shows: 'aliases' },
  viewCustomEvents: { needs: USERS, shows: 'events' },
  viewPlayer: { needs: USERS, shows: 'everything' },
  createUser: { needs: USERS, shows: 'a user that is there already' },
  updateUser: { needs: USERS, shows: 'properties' },
  updateAliases: { needs: USERS, shows: 'aliases' },
  updateAliasesBySubscription: { needs: USERS, shows: 'aliases' },
  deleteAlias: { needs: USERS, shows: 'aliases' },
  createSubscription: { needs: USERS, shows: 'a subscription that is there already' },
  updateSubscription: { needs: USERS, shows: 'a subscription' },
  transferSubscription: { needs: USERS, shows: 'aliases' },
  // Ids of recipients and what became of a message for each; of a history also `external_id`.
  viewDeliveries: { needs: ['messages'], shows: 'ids of recipients' },
  viewUnknownDeliveries: { needs: ['messages'], shows: 'ids of recipients' },
  getNotificationHistory: {
    needs: ['messages'],
    shows: 'ids and external ids of recipients, at the address of a file',
  },
  exportEvents: { needs: ['messages'], shows: 'ids and external ids of recipients, at the address of a file' },
  getNotification: { needs: ['messages'], shows: 'recipients as whoever sent the message named them' },
  getNotifications: { needs: ['messages'], shows: 'recipients as whoever sent the message named them' },
  createNotification: { needs: ['messages'], shows: 'which of the names in the request nobody has' },
}

/** Their answers hold nothing of users: settings, content, counts, and whether something was done. */
export const NO_USER_DATA = [
  ...['createTemplate', 'updateTemplate', 'deleteTemplate', 'listTemplates', 'viewTemplate', 'resumeTemplate'],
  ...['createSegment', 'updateSegment', 'deleteSegment', 'getSegment', 'getSegments', 'estimateNotificationRecipients'],
  ...['createJourney', 'updateJourney', 'deleteJourney', 'duplicateJourney', 'updateJourneyNode', 'viewJourney'],
  ...['viewJourneys', 'viewJourneyStats', 'viewJourneyVersion', 'viewJourneyVersions', 'simulateJourney'],
  ...['addJourneyUser', 'removeJourneyUser', 'listJourneyWebhooks', 'viewJourneyWebhook', 'deleteJourneyWebhook'],
  ...['rotateJourneyWebhookSecret', 'testJourneyWebhook'],
  ...['createInAppMessage', 'updateInAppMessage', 'deleteInAppMessage', 'listInAppMessages', 'viewInAppMessage'],
  ...['reportInAppClick', 'reportInAppImpression', 'reportInAppPageImpression'],
  ...['cancelNotification', 'closeUnknownDeliveries', 'resendUnknownDeliveries', 'startLiveActivity'],
  ...['updateLiveActivity', 'getOutcomes', 'measureOutcome', 'measureOutcomeSources'],
  ...['getEmailProviderMetrics', 'getEmailReputation', 'listNotices', 'viewSending', 'pauseSending', 'resumeSending'],
  ...['enableSending', 'viewDeliverySettings', 'updateDeliverySettings', 'viewEmailSettings', 'updateEmailSettings'],
  ...['deleteEmailSettings', 'resumeEmail', 'listEmailDomains', 'viewEmailDomain', 'addEmailDomain'],
  ...['updateEmailDomain', 'removeEmailDomain', 'rotateEmailDomainKeys', 'verifyEmailDomain'],
  ...['addEmailSuppressions', 'removeEmailSuppression', 'viewEmailEventSources', 'updateEmailEventSources'],
  ...['viewSmsSettings', 'updateSmsSettings', 'deleteSmsSettings', 'listEventWebhooks', 'viewEventWebhook'],
  ...['createEventWebhook', 'updateEventWebhook', 'deleteEventWebhook', 'rotateEventWebhookSecret', 'testEventWebhook'],
  ...['createCustomEvents', 'createCustomEventsByOldPath', 'deleteUser', 'deleteSubscription', 'addPlayer'],
  ...['editPlayer', 'deletePlayer', 'playerOnFocus', 'playerOnFocusPost', 'playerOnPurchase', 'playerOnSession'],
  ...['changeTagsByExternalId', 'updateSubscriptionByToken', 'enterLiveActivity', 'exitLiveActivity'],
  ...['setStartToken', 'removeStartToken', 'setUpdateToken', 'removeUpdateToken', 'trackActivityClick'],
  'trackActivityClickByPost',
]

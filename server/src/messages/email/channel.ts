// Email as a channel of the engine.

import { isEmailPaused } from '../../email/pause.ts'
import { isEmailByLanguage } from '../../templates/content-sources.ts'
import { changeDeliveries } from '../deliver/store.ts'
import type { JudgedDelivery, MessageChannel } from '../engine/channel.ts'
import { attachFiles } from './attach-files.ts'
import { composeEmail } from './content.ts'
import { countEmailOutcomes, countFailedEmails, isBounced, markArrivals, recordArrivals } from './count.ts'
import { lookUpCandidateHosts } from './look-up-hosts.ts'
import type { EmailPort } from './port.ts'
import { type EmailDetails, prepareEmails } from './prepare.ts'
import { recordSoftBouncesOfAnswered, recordSoftBouncesOfExpired, suppressBounced } from './suppress-bounced.ts'

/**
 * Mail servers defer senders they do not know, and expect a retry within minutes. 30 attempts take about three days.
 */
const RETRY_POLICY = { attempts: 30, firstMs: 5 * 60_000, longestMs: 4 * 3_600_000 }

const changesOf = (judged: readonly JudgedDelivery[]) => judged.map(({ change }) => change)

export const createEmailChannel = (port: EmailPort): MessageChannel<EmailDetails> => ({
  retryPolicy: RETRY_POLICY,
  variesByLanguage: isEmailByLanguage,
  isBounce: isBounced,

  prepareCandidates: (ctx, candidates) => lookUpCandidateHosts(ctx, port, candidates),

  /** Email is paused when too many recipients complained. Sending continues when somebody resumes it. */
  findHold: async ({ db }, appId) => ((await isEmailPaused(db, appId)) ? {} : undefined),

  prepare: ({ db }, appId, due, messages) => prepareEmails({ db, email: port }, appId, due, messages),

  complete: (_ctx, appId, deliveries) => attachFiles(port, appId, deliveries),

  compose: (delivery, texts, context) => composeEmail(port.references, delivery, texts, context),

  async writeOutcomes(db, appId, judged, expected, now) {
    if (expected.state === 'unknown') {
      await recordArrivals(db, appId, judged, now)
      return changeDeliveries(db, appId, changesOf(judged), expected)
    }
    // Feedback nearly always arrives after the provider's answer, so arrivals are first written without reading the
    // deliveries.
    markArrivals(judged, now)
    const changed = await changeDeliveries(db, appId, changesOf(judged), { ...expected, isUnheard: true })
    const isChanged = new Set(changed)
    const rest = judged.filter(({ change }) => !isChanged.has(change))
    await recordArrivals(db, appId, rest, now)
    return [...changed, ...(await changeDeliveries(db, appId, changesOf(rest), expected))]
  },

  countOutcomes: countEmailOutcomes,
  followOutcomes: recordSoftBouncesOfAnswered,
  afterOutcomes: suppressBounced,

  async followUnsent(db, appId, shardNumber, ended, now) {
    await countFailedEmails(db, appId, shardNumber, ended, now)
    await recordSoftBouncesOfExpired(db, appId, ended, now)
  },
})

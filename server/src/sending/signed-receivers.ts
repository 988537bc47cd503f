// Receivers of signed webhooks, for any domain: created, changed, given a new secret, tested and deleted in the same
// way. A domain describes its kind of receiver and gets the operations. Each change leaves an entry in the audit log.

import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { type AuditEntry, insertAuditEntries, lockApp } from '../apps/store.ts'
import { type AppError, appNotFound, invalid } from '../lib/errors.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import { newWebhookSecret, type SecretBox } from '../lib/secrets.ts'
import { rotated, sealedFor, secretsAt, type WebhookSecrets } from '../lib/webhook-secrets.ts'
import type { Db } from '../storage/db.ts'
import type { SendWebhook } from './send-notice.ts'

export type SignedReceiver = WebhookSecrets & { id: string; url: string; createdAt: Date; updatedAt: Date }

export type ReceiverContext = {
  db: Db
  now: () => Date
  newId: NewId
  secrets: SecretBox
  sendWebhook: SendWebhook
}

export type ReceiverKind<Receiver extends SignedReceiver> = {
  /** Secrets are sealed for their table and row, so that they open nowhere else. */
  table: string
  /** How the audit log names it. */
  targetType: AuditEntry['targetType']
  /** Included in every audit log entry about a receiver. */
  auditDetail: (receiver: Receiver) => Record<string, unknown>
  /** Maximum number of receivers per app. */
  limit: number
  limitReached: () => AppError
  notFound: () => AppError
  store: {
    findAll: (db: Db, appId: AppId) => Promise<Receiver[]>
    find: (db: Db, appId: AppId, id: string) => Promise<Receiver | undefined>
    lock: (db: Db, appId: AppId, id: string) => Promise<Receiver | undefined>
    insert: (db: Db, appId: AppId, receiver: Receiver) => Promise<unknown>
    update: (db: Db, appId: AppId, receiver: Receiver) => Promise<unknown>
    delete: (db: Db, appId: AppId, id: string) => Promise<unknown>
  }
}

/** The secret is shown only when it is generated. */
export type WithSecret<Receiver> = { webhook: Receiver; secret: string }

export type TestResult = { success: boolean; reason: string | null }

/** Called in the transaction of a change, after it. */
type AfterChange<Receiver> = (db: Db, receiver: Receiver) => Promise<void>

export function createSignedReceivers<Receiver extends SignedReceiver>(kind: ReceiverKind<Receiver>) {
  const { store } = kind

  const secretOf = (secrets: SecretBox, appId: AppId, id: string) => sealedFor(secrets, kind.table, appId, id)

  const signingSecrets = (secrets: SecretBox, appId: AppId, receiver: Receiver, now: Date): string[] =>
    secretsAt(secretOf(secrets, appId, receiver.id), receiver, now)

  type Audited = { by: RequestOrigin; action: string; receiver: Receiver; detail?: object }

  const audit = ({ newId, now }: ReceiverContext, db: Db, appId: AppId, { by, action, receiver, detail }: Audited) => {
    const { targetType, auditDetail } = kind
    const entry = {
      id: newId(),
      actor: actorOf(by),
      action: `${targetType}.${action}`,
      targetType,
      targetId: receiver.id,
      detail: { ...auditDetail(receiver), ...detail },
    }
    return insertAuditEntries(db, appId, [entry], now())
  }

  async function lock(db: Db, appId: AppId, id: string): Promise<Receiver> {
    const receiver = await store.lock(db, appId, id)
    if (!receiver) throw kind.notFound()
    return receiver
  }

  return {
    signingSecrets,

    async get({ db }: Pick<ReceiverContext, 'db'>, appId: AppId, id: string): Promise<Receiver> {
      const receiver = await store.find(db, appId, id)
      if (!receiver) throw kind.notFound()
      return receiver
    },

    /** `detail` is added to what the audit log records of every change. */
    create(
      ctx: ReceiverContext,
      appId: AppId,
      fields: Omit<Receiver, Exclude<keyof SignedReceiver, 'url'>>,
      by: RequestOrigin,
      detail: object = {},
    ): Promise<WithSecret<Receiver>> {
      const now = ctx.now()
      const id = ctx.newId()
      const secret = newWebhookSecret()
      const webhook = {
        ...fields,
        id,
        secret: secretOf(ctx.secrets, appId, id).seal(secret),
        previousSecret: null,
        previousUntil: null,
        createdAt: now,
        updatedAt: now,
      } as unknown as Receiver
      return ctx.db.transaction(async (db) => {
        // Counted under the lock of the app: of several concurrent requests only as many succeed as fit.
        if (!(await lockApp(db, appId))) throw appNotFound()
        if ((await store.findAll(db, appId)).length >= kind.limit) throw kind.limitReached()
        await store.insert(db, appId, webhook)
        await audit(ctx, db, appId, { by, action: 'create', receiver: webhook, detail })
        return { webhook, secret }
      })
    },

    /** `fields` are the names in the request, for the audit log. */
    change(
      ctx: ReceiverContext,
      appId: AppId,
      id: string,
      by: RequestOrigin,
      change: { edit: (before: Receiver, now: Date) => Receiver; fields: string[]; onChanged?: AfterChange<Receiver> },
    ): Promise<Receiver> {
      const { edit, fields, onChanged } = change
      return ctx.db.transaction(async (db) => {
        const now = ctx.now()
        const after = { ...edit(await lock(db, appId, id), now), updatedAt: now }
        await store.update(db, appId, after)
        await audit(ctx, db, appId, { by, action: 'update', receiver: after, detail: { fields } })
        await onChanged?.(db, after)
        return after
      })
    },

    /** The old secret signs as well for a day. */
    rotateSecret(ctx: ReceiverContext, appId: AppId, id: string, by: RequestOrigin): Promise<WithSecret<Receiver>> {
      const secret = newWebhookSecret()
      return ctx.db.transaction(async (db) => {
        const now = ctx.now()
        const before = await lock(db, appId, id)
        const sealed = secretOf(ctx.secrets, appId, id).seal(secret)
        const webhook = { ...before, ...rotated(before, sealed, now), updatedAt: now }
        await store.update(db, appId, webhook)
        await audit(ctx, db, appId, { by, action: 'rotate', receiver: webhook })
        return { webhook, secret }
      })
    },

    /** `onChanged` may throw, which keeps the receiver. */
    remove(
      ctx: ReceiverContext,
      appId: AppId,
      id: string,
      by: RequestOrigin,
      onChanged?: AfterChange<Receiver>,
    ): Promise<void> {
      return ctx.db.transaction(async (db) => {
        const receiver = await lock(db, appId, id)
        await store.delete(db, appId, id)
        await onChanged?.(db, receiver)
        await audit(ctx, db, appId, { by, action: 'delete', receiver })
      })
    },

    /** Sends one signed request of the type `test`. Its outcome changes nothing. */
    async sendTest(ctx: ReceiverContext, appId: AppId, id: string): Promise<TestResult> {
      const receiver = await store.find(ctx.db, appId, id)
      if (!receiver) throw kind.notFound()
      const now = ctx.now()
      const outcome = await ctx.sendWebhook({
        url: receiver.url,
        id: `test_${ctx.newId()}`,
        body: JSON.stringify({
          type: 'test',
          timestamp: now.toISOString(),
          data: { app_id: appId, webhook_id: id },
        }),
        secrets: signingSecrets(ctx.secrets, appId, receiver, now),
      })
      return outcome.kind === 'sent' ? { success: true, reason: null } : { success: false, reason: outcome.reason }
    },
  }
}

/** Where the address leads is checked when something is sent there, because a name can change what it resolves to. */
export function readWebhookUrl(text: string): string {
  const url = URL.parse(text)
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '')
    throw invalid('url must be an https address without a name and password, as https://example.com/events', {
      field: 'url',
    })
  return text
}

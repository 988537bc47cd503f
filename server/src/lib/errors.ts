// Every error that a caller can see. Domains throw these; only http/errors.ts knows statuses and formats.

export type ErrorKind =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not-found'
  | 'conflict'
  | 'unprocessable'
  | 'method-not-allowed'
  | 'too-large'
  | 'unsupported-media-type'
  | 'timed-out'
  | 'limited'
  | 'unavailable'

export type Problem = { code: string; title: string; meta?: Record<string, unknown> }

export class AppError extends Error {
  readonly kind: ErrorKind
  readonly problems: Problem[]
  /** How long to wait before the next attempt, in whole seconds, if that is known. */
  readonly retryAfterSeconds: number | undefined

  constructor(kind: ErrorKind, ...problems: Problem[]) {
    super(problems.map((problem) => problem.title).join('; '))
    this.kind = kind
    this.problems = problems
  }
}

/** A refused request. `retryAfterSeconds` is long enough for the next attempt to be admitted. */
export class RateLimited extends AppError {
  override readonly retryAfterSeconds: number
  constructor(retryAfterSeconds: number, title = 'API rate limit exceeded') {
    super('limited', { code: 'Rate Limit Exceeded', title, meta: {} })
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** The memory for request bodies is used up: by the caller's own address, or by all together. */
export class BodiesBusy extends AppError {
  override readonly retryAfterSeconds: number
  constructor(usedUpBy: 'address' | 'server', retryAfterSeconds: number) {
    if (usedUpBy === 'server') super('unavailable', { code: 'service-0', title: 'Service temporarily unavailable' })
    else
      super('limited', {
        code: 'Rate Limit Exceeded',
        title: 'Too many request bodies from this address are under way',
        meta: {},
      })
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/**
 * The database cancelled a statement at its time limit. Code that knows the request may replace this with a better
 * text.
 */
export class TookTooLong extends AppError {
  constructor() {
    super('unavailable', { code: 'service-0', title: 'Service temporarily unavailable' })
  }
}

/** The page of this server that explains keys. */
export const KEYS_PAGE = '/docs/accounts-and-keys#section-keys-ids'

/** The request has a key that is not valid. These are the only errors with documentation paths in `reference`. */
export class BadKey extends AppError {
  constructor() {
    super(
      'unauthenticated',
      // The original service's exact text, including the URL: its client libraries export it as a constant to compare
      // with.
      {
        code: 'auth-2',
        title:
          "Access denied.  Please include an 'Authorization: ...' header with a valid API key (https://documentation.onesignal.com/docs/en/keys-and-ids#api-keys).",
      },
      { code: 'auth-2', title: `What this server takes for a key is explained at ${KEYS_PAGE}` },
    )
  }
}

export const invalid = (title: string, meta?: Record<string, unknown>) =>
  new AppError('invalid', { code: 'request-0', title, ...(meta && { meta }) })
export const invalidUuid = (field: string, value: string) =>
  new AppError('invalid', { code: 'request-1', title: 'Invalid UUID', meta: { [field]: value } })
export const missingAuthorization = () =>
  new AppError('unauthenticated', {
    code: 'auth-1',
    title: "This operation requires 'Authorization' in the HTTP header",
  })
export const forbidden = (title = 'Forbidden') => new AppError('forbidden', { code: 'auth-3', title })
export const appNotFound = () => new AppError('not-found', { code: 'app-0', title: 'App not found' })
export const userNotFound = () => new AppError('not-found', { code: 'user-0', title: 'User not found' })
export const aliasNotFound = () => new AppError('not-found', { code: 'alias-0', title: 'Alias not found' })
export const subscriptionNotFound = () =>
  new AppError('not-found', { code: 'subscription-0', title: 'Subscription not found' })
export const aliasesClaimed = (meta: Record<string, unknown>) =>
  new AppError('conflict', { code: 'user-2', title: 'One or more Aliases claimed by another User', meta })
export const aliasLimitExceeded = (limit: number) =>
  new AppError('conflict', {
    code: 'Alias Limit Exceeded',
    title: `A user can have at most ${limit} custom aliases`,
    meta: { limit },
  })
export const subscriptionLimitExceeded = (limit: number) =>
  new AppError('conflict', {
    code: 'Subscription Limit Exceeded',
    title: `A user can have at most ${limit} subscriptions`,
    meta: { limit },
  })
/** The text is in the official clients' error catalogue. */
export const unavailable = () =>
  new AppError('unavailable', { code: 'service-0', title: 'Service temporarily unavailable' })

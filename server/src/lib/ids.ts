import { randomUUID } from 'node:crypto'

/** A UUID whose type says what it names, so that a user id cannot be passed for an app id. */
export type Id<Noun extends string> = string & { readonly __noun?: Noun }
export type OrganizationId = Id<'organization'>
export type AppId = Id<'app'>
export type KeyId = Id<'key'>
export type UserId = Id<'user'>
export type SubscriptionId = Id<'subscription'>

/** Maintenance jobs belong to no app, but every table's key starts with app_id, so they have this one. */
export const SYSTEM_APP_ID: AppId = '00000000-0000-4000-8000-000000000000'

export type NewId = () => string
export const newId: NewId = () => randomUUID()

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

export const isUuid = (text: string) => UUID.test(text)
export const isUuidV4 = (text: string) => UUID_V4.test(text)

// The user columns with a single value, which a request may set and an answer shows. A new property needs an entry
// here, its name in the two SQL lists below, a migration, and a test. Reading, storing, loading, comparing and showing
// it follow.

import Type, { type TSchema } from 'typebox'
import { camelCase, sql } from '../../storage/sql.ts'
import { optionalNumberOrText, optionalText } from './optional.ts'
import { readCountry, readIp, readLanguage, readNumber, readTimeZone } from './values.ts'

/** By the name on the wire, which is also the name of the column. */
export const USER_COLUMNS = {
  language: { request: optionalText(32, 'Language code, in any case.'), answer: Type.String(), read: readLanguage },
  timezone_id: { request: optionalText(64, 'IANA time zone.'), answer: Type.String(), read: readTimeZone },
  country: {
    request: optionalText(8, 'Country code of two letters, in any case.'),
    answer: Type.String(),
    read: readCountry,
  },
  lat: {
    request: optionalNumberOrText('Latitude, -90 to 90.'),
    answer: Type.Number(),
    read: readNumber('lat', -90, 90),
  },
  long: {
    request: optionalNumberOrText('Longitude, -180 to 180.'),
    answer: Type.Number(),
    read: readNumber('long', -180, 180),
  },
  ip: { request: optionalText(64), answer: Type.String(), read: readIp },
  test_user_name: { request: optionalText(128), answer: Type.String(), read: (value: string | null) => value || null },
} as const

/**
 * Written out, so that each statement can be read and checked as it stands. A test compares these lists with the table.
 */
export const USER_COLUMN_NAMES = sql`language, timezone_id, country, lat, long, ip, test_user_name`
export const USER_COLUMN_TYPES = sql`language text, timezone_id text, country text, lat float8, long float8, ip text, test_user_name text`

type ColumnName = keyof typeof USER_COLUMNS
type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name
type ColumnValue<Name extends ColumnName> = ReturnType<(typeof USER_COLUMNS)[Name]['read']>

/** As part of a user's properties. */
export type UserColumns = { [Name in ColumnName as CamelCase<Name>]: ColumnValue<Name> }
/** As part of a row, and on the wire. */
export type UserColumnRow = { [Name in ColumnName]: ColumnValue<Name> }

const columnNames = Object.keys(USER_COLUMNS) as ColumnName[]
const propertyNames = columnNames.map((name) => [name, camelCase(name) as keyof UserColumns] as const)

const mapColumns = <Value>(read: (name: ColumnName) => Value) =>
  Object.fromEntries(columnNames.map((name) => [name, read(name)]))

/** The fields in the schemas of requests and answers. */
export const columnRequests = mapColumns((name) => USER_COLUMNS[name].request) as unknown as {
  [Name in ColumnName]: (typeof USER_COLUMNS)[Name]['request']
}
export const columnAnswers = mapColumns((name) => Type.Optional(USER_COLUMNS[name].answer as TSchema)) as {
  [Name in ColumnName]: ReturnType<typeof Type.Optional<(typeof USER_COLUMNS)[Name]['answer']>>
}

export const EMPTY_COLUMNS = Object.fromEntries(propertyNames.map(([, property]) => [property, null])) as UserColumns

/** The validated columns of a request; null clears a column. */
export function readColumns(
  request: { [Name in ColumnName]?: string | number | null | undefined },
): Partial<UserColumns> {
  const columns: Record<string, unknown> = {}
  for (const [name, property] of propertyNames) {
    const value = request[name]
    const read = USER_COLUMNS[name].read as (value: string | number | null) => unknown
    if (value !== undefined) columns[property] = read(value)
  }
  return columns
}

export const columnsToWire = (columns: UserColumns) =>
  Object.fromEntries(propertyNames.map(([name, property]) => [name, columns[property]])) as UserColumnRow

export const columnsFromRow = (row: UserColumnRow) =>
  Object.fromEntries(propertyNames.map(([name, property]) => [property, row[name]])) as UserColumns

export const columnsOf = (properties: UserColumns) =>
  Object.fromEntries(propertyNames.map(([, property]) => [property, properties[property]])) as UserColumns

export const columnValues = (columns: UserColumns): unknown[] => propertyNames.map(([, property]) => columns[property])

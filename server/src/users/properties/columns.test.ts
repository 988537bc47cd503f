import { expect, test } from 'vitest'
import { USER_COLUMN_NAMES, USER_COLUMN_TYPES, USER_COLUMNS } from './columns.ts'

test('the lists of SQL name the columns of the table, in its order', () => {
  const names = Object.keys(USER_COLUMNS)
  expect(USER_COLUMN_NAMES.text.split(', ')).toEqual(names)
  expect(USER_COLUMN_TYPES.text.split(', ').map((column) => column.split(' ')[0])).toEqual(names)
})

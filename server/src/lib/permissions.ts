/** What the key of an app may be allowed to do. Routes ask for one of them, keys hold some. */
export const permissions = [
  'apps',
  'users',
  'messages',
  'segments',
  'templates',
  'journeys:view',
  'journeys:edit',
] as const
export type Permission = (typeof permissions)[number]

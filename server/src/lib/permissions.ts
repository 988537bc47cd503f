/** What a key of an app may be allowed to do. Each route requires one permission, and a key has some of them. */
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

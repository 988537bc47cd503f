// What may break a rule, and why. An entry that nothing needs any more fails the test too.

import type { SchemaException } from './schema-rules.ts'
import type { StatementRule } from './statement-rules.ts'

/** Small tables that belong to no app, each with the file that alone may touch it. */
export const GLOBAL_TABLES: Record<string, { store: string; because: string }> = {
  organizations: { store: 'apps/store.ts', because: 'owns apps, so it is above them' },
  api_keys: {
    store: 'apps/keys/store.ts',
    because: 'a key tells which app a request is about: it is read before the app is known',
  },
  api_key_usage: { store: 'apps/keys/store.ts', because: 'belongs to api_keys' },
  server_nodes: { store: 'limits/store.ts', because: 'the processes of one installation serve all apps' },
  mail_hosts: {
    store: 'email/inbox-providers/host-store.ts',
    because: 'whose the mail hosts of a domain are, DNS tells every app alike',
  },
  server_sending: { store: 'sending/store.ts', because: 'what holds the sending of all apps' },
  schema_migrations: { store: 'storage/migrate.ts', because: 'the schema is one for all apps' },
}

/** `tagged`: made by the sql tag. `readable`: its text stands in the sources. */
export type StatementException = {
  /** A file and what holds the statement, or a whole file. */
  at: string
  rules: readonly (StatementRule | 'tagged' | 'readable')[]
  because: string
}

const SYSTEM_ROWS = 'belongs to the system, which has no row among the apps'
const CATALOGUE = "asks PostgreSQL's own catalogue, which every node has"

export const STATEMENT_EXCEPTIONS: readonly StatementException[] = [
  {
    at: 'users/subscriptions/address-store.ts findAppsWithAddresses',
    rules: ['one app'],
    because: 'shows the apps of an organization or of the server together; each is one look into an index',
  },
  { at: 'apps/store.ts insertApp', rules: ['rows from apps'], because: 'this is where the row comes from' },
  {
    at: 'apps/store.ts insertOrganizationAuditEntries',
    rules: ['rows from apps'],
    because: `what concerns an organization ${SYSTEM_ROWS}; few rows`,
  },
  {
    at: 'apps/store.ts findAllApps',
    rules: ['one app'],
    because: "the operator's list, and an organization's: few rows",
  },
  {
    at: 'apps/store.ts findSmppAppsAcrossApps',
    rules: ['one app'],
    because: 'a worker signs in to the message centres of all apps: few rows, without locks',
  },
  {
    at: 'process/refuse-unreadable-secrets.ts findUnreadable',
    rules: ['one app'],
    because: 'before it starts, a server looks whether it can open the secrets of all apps: few rows, without locks',
  },
  {
    at: 'apps/store.ts findAuditEntries',
    rules: ['one app'],
    because: "an organization's log is over all its apps, and read a page at a time",
  },
  {
    at: 'cli/connect.ts lookAtSchema',
    rules: ['tagged', 'known table'],
    because: `${CATALOGUE}, before it is known whether there is a schema`,
  },
  { at: 'cli/doctor.ts checkPageCost', rules: ['no session settings'], because: 'looks at the setting itself' },
  {
    at: 'email/domains/store.ts findCheckedDomainsAcrossApps',
    rules: ['one app'],
    because: 'one job finds the domains whose records are looked at every day, without locks; each is looked at alone',
  },
  {
    at: 'email/domains/store.ts findKeysAcrossApps',
    rules: ['one app'],
    because: "for the operator's report: few rows, without locks",
  },
  {
    at: 'email/pause-store.ts findPausedAcrossApps',
    rules: ['one app'],
    because: "for the operator's report: few rows, without locks",
  },
  {
    at: 'feedback/webhook-store.ts findDueWebhooksAcrossApps',
    rules: ['one app'],
    because:
      'one job finds the few webhooks that have something to be told, without locks; each is told by a job of its app',
  },
  {
    at: 'feedback/webhook-store.ts findOldEventsAcrossApps',
    rules: ['one app'],
    because: 'retention over all apps: finds them without locks, then each is cleaned alone',
  },
  {
    at: 'limits/store.ts findAllAppsWithIdleCounters',
    rules: ['one app'],
    because: 'retention over all apps: finds them without locks, then each is cleaned alone',
  },
  {
    at: 'messages/settle/store.ts findSendingAcrossApps',
    rules: ['one app'],
    because: 'one job looks every minute for messages that nobody has called done; few rows, by an index of their own',
  },
  {
    at: 'events/store.ts insertEvents',
    rules: ['rows from apps'],
    because: 'the job in it could be the system’s, as far as can be read; news are those of an app',
  },
  {
    at: 'journeys/states/enter-audience.ts',
    rules: ['readable'],
    because:
      'segments decide what it says; journeys/states/enter-audience.test.ts holds every form of it to the same rules',
  },
  {
    at: 'messages/email/look-up-hosts.ts emailDomainsStatement',
    rules: ['readable'],
    because: 'candidates decide what it says; messages/expand/insert-deliveries.test.ts checks every form of it',
  },
  {
    at: 'messages/expand/insert-deliveries.ts',
    rules: ['readable'],
    because:
      'audience and times decide what it says; messages/expand/insert-deliveries.test.ts holds every form of it to the same rules',
  },
  {
    at: 'messages/expand/open-message-store.ts findExpiredOpenAcrossApps',
    rules: ['one app'],
    because: 'one job looks for open messages that are over; few rows, by an index of their own',
  },
  {
    at: 'messages/accept/store.ts insertSubmissions',
    rules: ['rows from apps'],
    because: 'the jobs in it could be the system’s, as far as can be read; messages are those of an app',
  },
  {
    at: 'queue/store.ts jobsInsert',
    rules: ['rows from apps', 'known table'],
    because: `maintenance ${SYSTEM_ROWS}; as part of a larger statement it names what that has stored`,
  },
  { at: 'queue/store.ts takeLead', rules: ['rows from apps'], because: `leadership ${SYSTEM_ROWS}` },
  { at: 'queue/store.ts takeSlots', rules: ['rows from apps'], because: `a schedule ${SYSTEM_ROWS}` },
  {
    at: 'queue/store.ts findDueAppsAcrossApps',
    rules: ['one app'],
    because: 'the sweep: one leader finds the apps with due work, without locks, and claims follow per app',
  },
  {
    at: 'queue/store.ts findAppsWithJobAcrossApps',
    rules: ['one app'],
    because: 'one job finds the apps to be woken when the whole server sends again, without locks',
  },
  { at: 'queue/store.ts countParkedAcrossApps', rules: ['one app'], because: "the operator's overview" },
  { at: 'queue/store.ts analyzeJobs', rules: ['queries only'], because: 'statistics' },
  {
    at: 'sdk/store.ts findOnlyApp',
    rules: ['one app'],
    because: 'whether a server has a single app is asked about all of them; two rows',
  },
  {
    at: 'segments/audience.ts',
    rules: ['readable'],
    because: 'filters decide what it says; segments/statements.test.ts holds every form of it to the same rules',
  },
  {
    at: 'segments/filters/compile.ts',
    rules: ['readable'],
    because: 'filters decide what it says; segments/statements.test.ts holds every form of it to the same rules',
  },
  {
    at: 'segments/scan.ts estimateCost',
    rules: ['readable'],
    because: 'it asks what statements would cost that are held to the rules where they are made',
  },
  {
    at: 'segments/index-store.ts findTagUsesAcrossApps',
    rules: ['one app'],
    because: 'an index serves all apps; one job reads their few segments, without locks',
  },
  { at: 'segments/index-store.ts findTagIndexes', rules: ['known table'], because: CATALOGUE },
  {
    at: 'segments/index-store.ts createTagIndex',
    rules: ['readable', 'tagged', 'queries only'],
    because: 'an index of an expression holds its key as text; one function quotes it',
  },
  {
    at: 'segments/index-store.ts dropTagIndex',
    rules: ['tagged', 'queries only'],
    because: 'made and dropped while the server runs; the name is checked',
  },
  { at: 'segments/index-store.ts analyzeUsers', rules: ['queries only'], because: 'statistics' },
  {
    at: 'sending/store.ts lockSending',
    rules: ['global alone'],
    because: 'the one row of server_sending has a copy on every node; one question more for each slice would be dear',
  },
  {
    at: 'sending/store.ts findSending',
    rules: ['global alone'],
    because: 'the one row of server_sending has a copy on every node; one question more for each slice would be dear',
  },
  { at: 'sending/store.ts findHeldAppsAcrossApps', rules: ['one app'], because: "the operator's overview" },
  { at: 'sending/database-identity-store.ts findObjectIds', rules: ['known table'], because: CATALOGUE },
  { at: 'storage/check-durability.ts findUnsafeSettings', rules: ['known table'], because: CATALOGUE },
  {
    at: 'storage/check-durability.ts readVersion',
    rules: ['no session settings'],
    because: 'the version is the same in every session',
  },
  {
    at: 'storage/db.ts createPool',
    rules: ['tagged', 'time is a parameter'],
    because: "this is how our clock learns PostgreSQL's time",
  },
  { at: 'storage/count-connections.ts countConnections', rules: ['known table'], because: CATALOGUE },
  { at: 'storage/distribute.ts hasCitus', rules: ['known table'], because: CATALOGUE },
  {
    at: 'storage/distribute.ts planDistribution',
    rules: ['known table', 'tagged'],
    because: `${CATALOGUE}; the names in the calls come from there, quoted`,
  },
  { at: 'storage/distribute.ts findPlaced', rules: ['known table'], because: CATALOGUE },
  { at: 'storage/distribute.ts distribute', rules: ['readable'], because: 'runs the calls of planDistribution' },
  {
    at: 'storage/embedded.ts createDatabase',
    rules: ['tagged', 'known table', 'queries only'],
    because: 'runs before our database exists; the name is a constant',
  },
  {
    at: 'storage/listen.ts createListener',
    rules: ['tagged', 'queries only'],
    because: 'LISTEN takes no parameters; channels are constants of ours, quoted',
  },
  {
    at: 'storage/migrate.ts pendingMigrations',
    rules: ['tagged'],
    because: 'runs on a connection of its own, outside the pool',
  },
  {
    at: 'storage/migrate.ts migrate',
    rules: ['tagged', 'queries only'],
    because: 'the table of migrations cannot be made by a migration',
  },
  { at: 'storage/migrate.ts apply', rules: ['tagged'], because: 'runs on a connection of its own, outside the pool' },
  { at: 'storage/partitions.ts findMonths', rules: ['known table'], because: CATALOGUE },
  {
    at: 'storage/partitions.ts createMonth',
    rules: ['tagged', 'queries only'],
    because: 'partitions by time are made as time goes by; the names are constants and dates of ours',
  },
  {
    at: 'storage/partitions.ts dropMonths',
    rules: ['tagged', 'queries only'],
    because: 'retention drops whole months; the names come from the catalogue, made by createMonth',
  },
  {
    at: 'storage/partitions.ts analyzeMonth',
    rules: ['tagged', 'queries only'],
    because: 'statistics; the name is made of a constant and a date of ours',
  },
  {
    at: 'storage/refresh-statistics.ts refreshStatistics',
    rules: ['tagged', 'known table', 'queries only'],
    because: 'statistics: asks the catalogue which tables grew, and ANALYZE takes no parameters',
  },
  { at: 'storage/sql.ts joined', rules: ['readable'], because: 'fragments of the tag in a row' },
  { at: 'storage/sql.ts sql', rules: ['readable'], because: 'the tag itself' },
  {
    at: 'users/change-feed/store.ts findAppsWithFeedEntriesAcrossApps',
    rules: ['one app'],
    because: 'one job finds the few apps with news whose announcement was lost, without locks',
  },
  {
    at: 'users/count-store.ts sumPlayerCounts',
    rules: ['one app'],
    because: 'the apps of an organization are listed together; a few rows of each are read by key',
  },
]

export const SCHEMA_EXCEPTIONS: readonly (SchemaException & { because: string })[] = [
  {
    name: 'users.timezone_id',
    rules: ['ids are uuids'],
    because: 'the name of a time zone, as the interface calls it',
  },
  { name: 'subscriptions.ad_id', rules: ['ids are uuids'], because: 'an advertising id, made elsewhere' },
  { name: 'audit_log.target_id', rules: ['ids are uuids'], because: 'names things of any kind' },
]

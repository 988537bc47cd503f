-- Files that are made on request and fetched by an address that nobody can guess: lists of subscriptions, and of what became
-- of a message. They are kept here because the database is all that several servers share.
create table exports (
  app_id uuid not null,
  id uuid not null,
  kind text not null,
  -- Who has the address has the file, so the part that cannot be guessed is kept as a hash.
  secret_hash bytea not null,
  request jsonb not null,
  state text not null default 'making',
  -- The last row that is in the file: where another worker goes on.
  progress jsonb,
  chunk_count integer not null default 0,
  byte_count bigint not null default 0,
  row_count bigint not null default 0,
  requested_at timestamptz not null,
  ended_at timestamptz,
  constraint exports_pk primary key (app_id, id),
  constraint exports_kind_known check (kind in ('subscriptions', 'history', 'activity')),
  constraint exports_state_known check (state in ('making', 'ready', 'failed')),
  constraint exports_ended_when check ((ended_at is null) = (state = 'making'))
);

-- One at a time.
create unique index exports_making on exports (app_id, kind) where state = 'making';
create index exports_by_age on exports (app_id, ended_at);

create table export_chunks (
  app_id uuid not null,
  export_id uuid not null,
  n integer not null,
  content bytea not null,
  constraint export_chunks_pk primary key (app_id, export_id, n),
  constraint export_chunks_export_fk foreign key (app_id, export_id) references exports (app_id, id) on delete cascade,
  constraint export_chunks_size check (octet_length(content) between 1 and 1048576)
);

-- Compressed already.
alter table export_chunks alter column content set storage external;

-- What people did after a message, counted by the hour. An outcome counts once for the app (message_id is all zeros) and once
-- for each message that it is put down to.
create table outcome_counts (
  app_id uuid not null,
  name text not null,
  message_id uuid not null,
  hour timestamptz not null,
  attribution text not null,
  -- The type of the subscription; empty where the SDK did not say.
  platform text not null,
  count bigint not null,
  sum numeric not null,
  constraint outcome_counts_pk primary key (app_id, name, message_id, hour, attribution, platform),
  constraint outcome_counts_attribution_known check (attribution in ('direct', 'influenced', 'unattributed'))
) with (fillfactor = 50);

create index outcome_counts_by_age on outcome_counts (app_id, hour);

-- SDKs bring names without a key; an app has a bounded number of them.
create table outcome_names (
  app_id uuid not null,
  name text not null,
  constraint outcome_names_pk primary key (app_id, name),
  constraint outcome_names_length check (length(name) between 1 and 128)
);

-- What Apple reaches live activities by: the kind of activity that may be started on a device, and one that is running there.
create table live_activity_tokens (
  app_id uuid not null,
  purpose text not null,
  -- The type of the activity for `start`, its id for `update`.
  name text not null,
  subscription_id uuid not null,
  token text not null,
  updated_at timestamptz not null,
  constraint live_activity_tokens_pk primary key (app_id, purpose, name, subscription_id),
  constraint live_activity_tokens_subscription_fk foreign key (app_id, subscription_id)
    references subscriptions (app_id, id) on delete cascade,
  constraint live_activity_tokens_purpose_known check (purpose in ('start', 'update')),
  constraint live_activity_tokens_name_length check (length(name) between 1 and 256)
);

create index live_activity_tokens_by_subscription on live_activity_tokens (app_id, subscription_id, updated_at);
create index live_activity_tokens_by_age on live_activity_tokens (app_id, purpose, updated_at);

-- What was asked to be said, to whom and when. Who actually got it is in deliveries.
create table messages (
  app_id uuid not null,
  id uuid not null,
  channel text not null,
  -- As the interface numbers them: 0 dashboard, 1 API, 3 automated.
  kind smallint not null default 1,
  -- Messages of journeys are read by id, and stand in no list.
  is_listed boolean not null default true,
  -- A few named people, or everybody else: what is direct never waits behind a broadcast.
  lane text not null,
  state text not null default 'scheduled',
  name text,
  template_id uuid,
  -- Resolved when the message was accepted: segments by id, the template's content with the request's on top.
  audience jsonb not null,
  content jsonb not null,
  -- What the MJML of an email became.
  email_html text,
  options jsonb not null default '{}',
  queued_at timestamptz not null,
  send_after timestamptz not null,
  -- Fixed once, when its deliveries begin to be written; part of their key.
  expand_at timestamptz,
  -- How far that has come: the last subscription of the range before, and how many deliveries there are.
  expanded_to uuid,
  expanded_count bigint not null default 0,
  completed_at timestamptz,
  canceled_at timestamptz,
  constraint messages_pk primary key (app_id, id),
  constraint messages_channel_known check (channel in ('push', 'email', 'sms')),
  constraint messages_lane_known check (lane in ('direct', 'bulk')),
  constraint messages_state_known check (state in ('scheduled', 'expanding', 'sending', 'done', 'canceled')),
  constraint messages_expanding_since check (state in ('scheduled', 'canceled') or expand_at is not null),
  constraint messages_done_when check ((completed_at is not null) = (state = 'done')),
  constraint messages_canceled_when check ((canceled_at is not null) = (state = 'canceled'))
);

create index messages_by_age on messages (app_id, queued_at, id);
create index messages_by_schedule on messages (app_id, send_after, id);
-- Direct messages that wait to be expanded, all of an app's at once.
create index messages_direct_waiting on messages (app_id, send_after) where state = 'scheduled' and lane = 'direct';
-- What may have been left unfinished by a crash between two statements.
create index messages_under_way on messages (app_id, id) where state in ('expanding', 'sending');

-- Which requests were taken, so that a retry finds the message of the first. The two names are key spaces of their own.
create table message_keys (
  app_id uuid not null,
  name text not null,
  key uuid not null,
  message_id uuid not null,
  request_hash bytea not null,
  answer jsonb not null,
  taken_at timestamptz not null,
  constraint message_keys_pk primary key (app_id, name, key),
  constraint message_keys_name_known check (name in ('idempotency_key', 'external_id'))
);

create index message_keys_by_age on message_keys (app_id, taken_at);

-- One message to one subscription, and what was decided about it. Written by the million: no foreign keys, one partition per
-- month of expand_at, old months dropped whole (storage/partitions.ts makes them).
create table deliveries (
  app_id uuid not null,
  expand_at timestamptz not null,
  message_id uuid not null,
  subscription_id uuid not null,
  -- Which run of a journey; all zeros outside journeys.
  run_id uuid not null default '00000000-0000-0000-0000-000000000000',
  user_id uuid not null,
  -- The type of the subscription.
  platform text not null,
  -- Where it waits: lane, provider and part, `bulk/apns/2`. One worker at a time works through a line.
  line text not null,
  state text not null,
  reason text,
  -- When it may be tried (next), and until when.
  due_at timestamptz not null,
  expires_at timestamptz not null,
  attempts smallint not null default 0,
  -- Of the worker that marked it as sending.
  fence bigint,
  -- The provider's own name for it, by which receipts come back.
  provider_ref text,
  -- When it reached its state, where that is an end.
  settled_at timestamptz,
  received_at timestamptz,
  clicked_at timestamptz,
  constraint deliveries_pk primary key (app_id, expand_at, message_id, subscription_id, run_id),
  constraint deliveries_state_known check (
    state in ('pending', 'sending', 'sent', 'failed', 'skipped', 'unknown', 'expired', 'canceled')),
  constraint deliveries_settled_when check ((settled_at is null) = (state in ('pending', 'sending')))
) partition by range (expand_at);

create index deliveries_due on deliveries (app_id, line, due_at) where state = 'pending';
create index deliveries_sending on deliveries (app_id, line) where state = 'sending';
create index deliveries_unknown on deliveries (app_id, message_id) where state = 'unknown';

-- How many deliveries of a message are in which state and for which reason: the sum over `part` is the count. Changed in the
-- transaction that changes the rows; a part belongs to one worker at a time, so that workers do not wait for each other.
-- `received` and `clicked` count beside the states: of those sent, how many came back to tell.
create table message_counts (
  app_id uuid not null,
  message_id uuid not null,
  platform text not null,
  state text not null,
  reason text not null default '',
  part smallint not null,
  count bigint not null,
  constraint message_counts_pk primary key (app_id, message_id, platform, state, reason, part)
) with (fillfactor = 50);

-- What users did, in their own words. Written by the million: no foreign keys, one partition per month, and old months are
-- dropped whole. The partitions are made by the server (storage/partitions.ts), because only it knows what time it is.
create table events (
  app_id uuid not null,
  user_id uuid not null,
  name text not null,
  -- When it happened; received_at is when we were told.
  at timestamptz not null,
  id uuid not null,
  received_at timestamptz not null,
  properties jsonb not null default '{}',
  -- Answers "how often did this user do X since T" from the key alone.
  constraint events_pk primary key (app_id, user_id, name, at, id),
  constraint events_name_length check (length(name) between 1 and 128)
) partition by range (at);

-- Who did X since T.
create index events_by_name on events (app_id, name, at) include (user_id);
-- What did this user do lately: a page costs the same however many there are.
create index events_by_user on events (app_id, user_id, at, id);

-- Keys of events that were taken: whoever inserts one first, over all servers, stores the event. Apart from the events,
-- because a key must be unique whatever the month of its event, and because a key is kept for a day only.
create table event_keys (
  app_id uuid not null,
  key uuid not null,
  taken_at timestamptz not null,
  constraint event_keys_pk primary key (app_id, key)
)
with (
  -- Every row is deleted a day later: a fifth of a large table is too late to begin cleaning.
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000
);

create index event_keys_by_age on event_keys (app_id, taken_at);

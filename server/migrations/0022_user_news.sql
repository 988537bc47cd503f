-- What happened to users, for whoever follows them. Nothing is written that nobody has asked for.

-- What an app's followers want to be told of.
create table watches (
  app_id uuid not null,
  kind text not null,
  -- Of the custom event; the other kinds have none.
  name text not null default '',
  constraint watches_pk primary key (app_id, kind, name),
  constraint watches_kind_known check (kind in ('change', 'session', 'event', 'action')),
  constraint watches_name_of_event check ((kind = 'event') = (name <> ''))
);

-- What they have yet to be told; who takes a row deletes it.
create table user_news (
  app_id uuid not null,
  id uuid not null,
  user_id uuid not null,
  kind text not null,
  -- Whose doing the message was that somebody acted on.
  run_id uuid,
  -- The custom event itself.
  event jsonb,
  -- When we learned of it.
  at timestamptz not null,
  constraint user_news_pk primary key (app_id, id),
  constraint user_news_kind_known check (kind in ('change', 'session', 'event', 'action')),
  constraint user_news_event_with_kind check ((kind = 'event') = (event is not null))
)
with (
  -- Every row is deleted soon: a fifth of a large table is too late to begin cleaning.
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.02,
  vacuum_truncate = false
);

create index user_news_by_age on user_news (app_id, at);

-- Messages that apps show while they are open. Devices fetch what is meant for them, and report what was seen and clicked.
create table in_app_messages (
  app_id uuid not null,
  id uuid not null,
  name text not null,
  state text not null,
  display_location text not null,
  -- Seconds until it goes away by itself; null: until somebody closes it.
  display_duration double precision,
  remove_height_margin boolean not null,
  remove_width_margin boolean not null,
  -- Any of these lists, each of which wants all of its triggers. Devices judge them.
  triggers jsonb not null,
  -- Those of the segments (all where none are included), or of them only who was granted it.
  audience text not null,
  included_segments uuid[] not null,
  excluded_segments uuid[] not null,
  -- Empty: all.
  platforms text[] not null,
  redisplay_limit integer,
  redisplay_delay integer,
  start_time timestamptz,
  end_time timestamptz,
  has_liquid boolean not null,
  -- What can be clicked and turned to, in any language: nothing else is counted by name, since devices have no key.
  click_labels text[] not null,
  page_labels text[] not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint in_app_messages_pk primary key (app_id, id),
  constraint in_app_messages_name_length check (length(name) between 1 and 128),
  constraint in_app_messages_state_known check (state in ('draft', 'live', 'paused', 'archived')),
  constraint in_app_messages_location_known check (display_location in ('top', 'center', 'bottom', 'full')),
  constraint in_app_messages_audience_known check (audience in ('segments', 'granted')),
  constraint in_app_messages_redisplay_whole check ((redisplay_limit is null) = (redisplay_delay is null)),
  constraint in_app_messages_window check (start_time < end_time)
);

-- The order of the list, and what devices ask for.
create index in_app_messages_by_age on in_app_messages (app_id, created_at, id);
create index in_app_messages_live on in_app_messages (app_id) where state = 'live';

-- What a message says in one language. The id stays when the content changes: devices and counts know it by that.
create table in_app_variants (
  app_id uuid not null,
  in_app_message_id uuid not null,
  language text not null,
  id uuid not null,
  content jsonb not null,
  constraint in_app_variants_pk primary key (app_id, in_app_message_id, language),
  constraint in_app_variants_id_unique unique (app_id, id),
  constraint in_app_variants_message_fk foreign key (app_id, in_app_message_id) references in_app_messages (app_id, id)
    on delete cascade
);

-- How often a message was seen, clicked and turned over: as a whole, in each language, and for each button and page.
create table in_app_counts (
  app_id uuid not null,
  in_app_message_id uuid not null,
  what text not null,
  part text not null,
  label text not null,
  total bigint not null,
  uniques bigint not null,
  constraint in_app_counts_pk primary key (app_id, in_app_message_id, what, part, label),
  constraint in_app_counts_what_known check (what in ('impression', 'click', 'page')),
  constraint in_app_counts_part_known check (part in ('message', 'variant', 'target')),
  constraint in_app_counts_total_safe check (total between 0 and 9007199254740991),
  constraint in_app_counts_uniques_safe check (uniques between 0 and total)
) with (fillfactor = 70);

-- By whom: one row for each of the above and each subscription, so that the unique ones are counted once. Not tied to the
-- message by a key: there may be millions of them, and they go in the background.
create table in_app_seen (
  app_id uuid not null,
  in_app_message_id uuid not null,
  subscription_id uuid not null,
  what text not null,
  part text not null,
  label text not null,
  -- Whose subscription it was then.
  user_id uuid not null,
  constraint in_app_seen_pk primary key (app_id, in_app_message_id, subscription_id, what, part, label)
);

create index in_app_seen_by_user on in_app_seen (app_id, user_id);

-- Who may see a message that is only for whom it is granted to, and until when ('infinity': as long as it is live).
create table in_app_grants (
  app_id uuid not null,
  user_id uuid not null,
  in_app_message_id uuid not null,
  expires_at timestamptz not null,
  constraint in_app_grants_pk primary key (app_id, user_id, in_app_message_id)
);

create index in_app_grants_by_message on in_app_grants (app_id, in_app_message_id);
create index in_app_grants_by_expiry on in_app_grants (app_id, expires_at);

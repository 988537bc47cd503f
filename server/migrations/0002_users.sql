create table users (
  app_id uuid not null,
  id uuid not null,
  tags jsonb not null default '{}',
  language text,
  timezone_id text,
  country text,
  lat double precision,
  long double precision,
  ip text,
  test_user_name text,
  first_active timestamptz not null,
  amount_spent numeric not null default 0,
  -- Counted under the row's lock; the checks below are what makes the limits exact under concurrency.
  alias_count smallint not null default 0,
  subscription_count smallint not null default 0,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint users_pk primary key (app_id, id),
  constraint users_alias_limit check (alias_count between 0 and 10),
  constraint users_subscription_limit check (subscription_count between 0 and 20),
  constraint users_amount_finite check (amount_spent between -9007199254740991 and 9007199254740991)
);

-- Aliases and subscriptions have no foreign key to their user: they are only written under the lock of the user's row, or
-- together with a new one, and checking each insert again cost a quarter of what creating a user costs PostgreSQL.
create table aliases (
  app_id uuid not null,
  label text not null,
  value text not null,
  user_id uuid not null,
  constraint aliases_pk primary key (app_id, label, value),
  constraint aliases_one_value_per_label unique (app_id, user_id, label),
  constraint aliases_label_length check (length(label) between 1 and 128),
  constraint aliases_value_length check (length(value) between 1 and 128),
  constraint aliases_id_is_no_alias check (label <> 'onesignal_id')
);

create table subscriptions (
  app_id uuid not null,
  id uuid not null,
  user_id uuid not null,
  -- The canonical type decides identity; the spelling it was created with is what is answered.
  type text not null,
  type_spelling text not null,
  token text,
  -- sha256: tokens of 4,096 characters do not fit an index. Emails are hashed in lower case.
  token_hash bytea,
  enabled boolean not null default true,
  notification_types integer,
  sdk text,
  device_model text,
  device_os text,
  rooted boolean,
  test_type integer,
  app_version text,
  net_type integer,
  carrier text,
  web_auth text,
  web_p256 text,
  -- Fields that only the legacy player operations set.
  language text,
  timezone_seconds integer,
  ad_id text,
  country text,
  lat double precision,
  long double precision,
  badge_count integer,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint subscriptions_pk primary key (app_id, id),
  constraint subscriptions_token_unique unique (app_id, type, token_hash),
  constraint subscriptions_token_hashed check ((token is null) = (token_hash is null))
);

create index subscriptions_by_user on subscriptions (app_id, user_id);

-- What changes with every session lives apart: rewriting the wide rows above for it would bloat them.
-- A missing row means: no session yet, last active at creation.
create table user_activity (
  app_id uuid not null,
  user_id uuid not null,
  last_active timestamptz not null,
  session_count bigint not null default 0,
  session_time bigint not null default 0,
  constraint user_activity_pk primary key (app_id, user_id),
  constraint user_activity_user_fk foreign key (app_id, user_id) references users (app_id, id) on delete cascade,
  constraint user_activity_count_safe check (session_count between 0 and 9007199254740991),
  constraint user_activity_time_safe check (session_time between 0 and 9007199254740991)
) with (fillfactor = 70);

create table subscription_activity (
  app_id uuid not null,
  subscription_id uuid not null,
  last_active timestamptz not null,
  session_count bigint not null default 0,
  session_time bigint not null default 0,
  constraint subscription_activity_pk primary key (app_id, subscription_id),
  constraint subscription_activity_subscription_fk foreign key (app_id, subscription_id)
    references subscriptions (app_id, id) on delete cascade,
  constraint subscription_activity_count_safe check (session_count between 0 and 9007199254740991),
  constraint subscription_activity_time_safe check (session_time between 0 and 9007199254740991)
) with (fillfactor = 70);

create table purchases (
  app_id uuid not null,
  user_id uuid not null,
  bought_at timestamptz not null,
  -- The place inside its request: purchases of one request share their time.
  position integer not null,
  id uuid not null,
  sku text not null,
  iso text not null,
  amount text not null,
  count integer not null,
  constraint purchases_pk primary key (app_id, user_id, bought_at, position, id),
  constraint purchases_user_fk foreign key (app_id, user_id) references users (app_id, id) on delete cascade
);

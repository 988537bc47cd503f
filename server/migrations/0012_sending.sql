-- Whether, how much and when an app may send.

-- The state of an app's sending: one row, made when it is first needed, whose lock every slice of deliveries takes.
create table app_sending (
  app_id uuid not null,
  -- The sum of the app's rows in sending_usage.
  used bigint not null default 0,
  -- The newest time that usage was counted at. Clocks of servers differ a little; the window never goes back.
  counted_at timestamptz,
  -- Since when the app is disabled for having sent too much, and when that last ended.
  disabled_at timestamptz,
  enabled_at timestamptz,
  -- Since when somebody holds its sending.
  paused_at timestamptz,
  constraint app_sending_pk primary key (app_id),
  constraint app_sending_used_counted check (used >= 0)
) with (fillfactor = 50);

-- How many messages an app sent in each second that still counts.
create table sending_usage (
  app_id uuid not null,
  second timestamptz not null,
  count bigint not null,
  constraint sending_usage_pk primary key (app_id, second),
  constraint sending_usage_counted check (count >= 0)
) with (
  -- Every row is written many times within a second, and deleted a quarter of an hour later.
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.05
);

-- What an app wants of its deliveries. An app without a row has the defaults.
create table delivery_settings (
  app_id uuid not null,
  quiet_hours jsonb,
  frequency_caps jsonb not null default '[]',
  throttle_per_minute integer,
  retention_days integer,
  -- Messages per subscribed subscription within 15 minutes.
  limit_factor integer not null default 10,
  updated_at timestamptz not null,
  constraint delivery_settings_pk primary key (app_id),
  constraint delivery_settings_caps_listed check (jsonb_typeof(frequency_caps) = 'array'),
  constraint delivery_settings_throttle_positive check (throttle_per_minute > 0),
  constraint delivery_settings_retention_positive check (retention_days > 0),
  constraint delivery_settings_factor_known check (limit_factor between 1 and 100000)
);

-- What holds the sending of all apps. There is one row.
create table server_sending (
  is_only boolean not null default true,
  paused_at timestamptz,
  -- Since when sending is held because this database is a copy, or was restored.
  restored_at timestamptz,
  -- What was due before is given up.
  discard_before timestamptz,
  -- What the database was known by when a server last started on it.
  identity jsonb,
  constraint server_sending_pk primary key (is_only),
  constraint server_sending_only check (is_only)
);

insert into server_sending default values;

-- Who is told when an app is disabled.
create table app_administrators (
  app_id uuid not null,
  id uuid not null,
  email text,
  webhook_url text,
  -- Sealed.
  webhook_secret text,
  created_at timestamptz not null,
  constraint app_administrators_pk primary key (app_id, id),
  constraint app_administrators_email_unique unique (app_id, email),
  constraint app_administrators_url_unique unique (app_id, webhook_url),
  constraint app_administrators_email_length check (length(email) between 3 and 254),
  constraint app_administrators_url_length check (length(webhook_url) between 9 and 2048),
  constraint app_administrators_reachable check (email is not null or webhook_url is not null),
  constraint app_administrators_url_signed check ((webhook_url is null) = (webhook_secret is null))
);

-- What happened that somebody must know of: one row for the app, and one for each administrator.
create table notices (
  app_id uuid not null,
  id uuid not null,
  at timestamptz not null,
  kind text not null,
  detail jsonb not null default '{}',
  -- Null in the row of the app itself. Kept when the administrator is gone.
  administrator_id uuid,
  -- How it goes out: 'listed' is for reading alone.
  state text not null,
  settled_at timestamptz,
  reason text,
  constraint notices_pk primary key (app_id, id),
  constraint notices_state_known check (state in ('listed', 'waiting', 'sent', 'failed'))
);

create index notices_by_age on notices (app_id, at desc, id desc);

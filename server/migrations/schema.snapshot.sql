-- The schema that the migrations add up to, for reading and for review. Written by a test:
-- UPDATE_SNAPSHOT=1 npx vitest run server/test/schema.test.ts

create table aliases (
  app_id uuid not null,
  label text not null,
  value text not null,
  user_id uuid not null,
  constraint aliases_id_is_no_alias CHECK ((label <> 'onesignal_id'::text)),
  constraint aliases_label_length CHECK (((length(label) >= 1) AND (length(label) <= 128))),
  constraint aliases_one_value_per_label UNIQUE (app_id, user_id, label),
  constraint aliases_pk PRIMARY KEY (app_id, label, value),
  constraint aliases_value_length CHECK (((length(value) >= 1) AND (length(value) <= 128)))
);

create table api_key_usage (
  key_id uuid not null,
  last_used_at timestamp with time zone not null,
  constraint api_key_usage_key_fk FOREIGN KEY (key_id) REFERENCES api_keys(id),
  constraint api_key_usage_pk PRIMARY KEY (key_id)
);

create table api_keys (
  id uuid not null,
  kind text not null,
  organization_id uuid not null,
  app_id uuid,
  name text not null,
  hash bytea not null,
  permissions text[] not null,
  ip_allowlist text[] not null default '{}'::text[],
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  ip_allowlist_mode text not null default 'explicit'::text,
  constraint api_keys_app_of_kind CHECK (((kind = 'app'::text) = (app_id IS NOT NULL))),
  constraint api_keys_hash_length CHECK ((octet_length(hash) = 32)),
  constraint api_keys_hash_unique UNIQUE (hash),
  constraint api_keys_kind_known CHECK ((kind = ANY (ARRAY['app'::text, 'org'::text]))),
  constraint api_keys_mode_known CHECK ((ip_allowlist_mode = ANY (ARRAY['disabled'::text, 'explicit'::text]))),
  constraint api_keys_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations(id),
  constraint api_keys_pk PRIMARY KEY (id)
);
CREATE INDEX api_keys_by_app ON public.api_keys USING btree (app_id);

create table apps (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  plan text not null default 'free'::text,
  limits jsonb not null default '{}'::jsonb,
  keyless_sdk boolean not null default true,
  identity_required boolean not null default false,
  identity_public_key text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  push_settings jsonb not null default '{}'::jsonb,
  credentials jsonb not null default '{}'::jsonb,
  vapid_public_key text,
  constraint apps_identity_key_present CHECK (((NOT identity_required) OR (identity_public_key IS NOT NULL))),
  constraint apps_name_length CHECK (((length(name) >= 1) AND (length(name) <= 128))),
  constraint apps_organization_fk FOREIGN KEY (organization_id) REFERENCES organizations(id),
  constraint apps_pk PRIMARY KEY (id),
  constraint apps_plan_known CHECK ((plan = ANY (ARRAY['free'::text, 'paid'::text]))),
  constraint apps_vapid_pair CHECK (((vapid_public_key IS NOT NULL) = (credentials ? 'vapid'::text)))
);
CREATE INDEX apps_by_organization ON public.apps USING btree (organization_id);

create table audit_log (
  app_id uuid not null,
  at timestamp with time zone not null,
  id uuid not null,
  actor_kind text not null,
  actor_id uuid,
  action text not null,
  target_type text not null,
  target_id text not null,
  detail jsonb not null default '{}'::jsonb,
  organization_id uuid,
  actor_ip text,
  constraint audit_log_pk PRIMARY KEY (app_id, at, id)
);
CREATE INDEX audit_log_by_organization ON public.audit_log USING btree (organization_id, at, id);

create table event_keys (
  app_id uuid not null,
  key uuid not null,
  taken_at timestamp with time zone not null,
  constraint event_keys_pk PRIMARY KEY (app_id, key)
) with (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000);
CREATE INDEX event_keys_by_age ON public.event_keys USING btree (app_id, taken_at);

create table events (
  app_id uuid not null,
  user_id uuid not null,
  name text not null,
  at timestamp with time zone not null,
  id uuid not null,
  received_at timestamp with time zone not null,
  properties jsonb not null default '{}'::jsonb,
  constraint events_name_length CHECK (((length(name) >= 1) AND (length(name) <= 128))),
  constraint events_pk PRIMARY KEY (app_id, user_id, name, at, id)
) partition by RANGE (at);
CREATE INDEX events_by_name ON ONLY public.events USING btree (app_id, name, at) INCLUDE (user_id);
CREATE INDEX events_by_user ON ONLY public.events USING btree (app_id, user_id, at, id);

create table jobs (
  app_id uuid not null,
  id uuid not null,
  name text not null,
  key text not null,
  payload jsonb not null default '{}'::jsonb,
  state text not null default 'ready'::text,
  run_at timestamp with time zone not null,
  again_at timestamp with time zone,
  attempts integer not null default 0,
  crashes integer not null default 0,
  fence bigint not null default 0,
  lease_until timestamp with time zone,
  last_error text,
  parked_at timestamp with time zone,
  enqueued_at timestamp with time zone not null,
  constraint jobs_key_length CHECK (((length(key) >= 1) AND (length(key) <= 512))),
  constraint jobs_key_unique UNIQUE (app_id, name, key),
  constraint jobs_lease_while_running CHECK (((state = 'running'::text) = (lease_until IS NOT NULL))),
  constraint jobs_name_length CHECK (((length(name) >= 1) AND (length(name) <= 128))),
  constraint jobs_parked_when CHECK (((state = 'parked'::text) = (parked_at IS NOT NULL))),
  constraint jobs_pk PRIMARY KEY (app_id, id),
  constraint jobs_state_known CHECK ((state = ANY (ARRAY['ready'::text, 'running'::text, 'parked'::text])))
) with (autovacuum_analyze_scale_factor=0.02, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000, vacuum_truncate=false);
CREATE INDEX jobs_due ON public.jobs USING btree (app_id, run_at) WHERE (state = 'ready'::text);
CREATE INDEX jobs_parked ON public.jobs USING btree (app_id, parked_at) WHERE (state = 'parked'::text);
CREATE INDEX jobs_running ON public.jobs USING btree (app_id, lease_until) WHERE (state = 'running'::text);

create table leaders (
  app_id uuid not null,
  name text not null,
  holder uuid not null,
  lease_until timestamp with time zone not null,
  constraint leaders_pk PRIMARY KEY (app_id, name)
);

create unlogged table limit_counters (
  app_id uuid not null,
  counter text not null,
  log double precision[] not null,
  idle_at double precision not null,
  constraint limit_counters_pk PRIMARY KEY (app_id, counter)
) with (fillfactor=50);

create table organizations (
  id uuid not null,
  name text not null,
  created_at timestamp with time zone not null,
  constraint organizations_name_length CHECK (((length(name) >= 1) AND (length(name) <= 128))),
  constraint organizations_pk PRIMARY KEY (id)
);

create table player_counts (
  app_id uuid not null,
  slot smallint not null,
  players bigint not null default 0,
  subscribed bigint not null default 0,
  messageable bigint not null default 0,
  constraint player_counts_pk PRIMARY KEY (app_id, slot)
) with (fillfactor=50);

create table purchases (
  app_id uuid not null,
  user_id uuid not null,
  bought_at timestamp with time zone not null,
  position integer not null,
  id uuid not null,
  sku text not null,
  iso text not null,
  amount text not null,
  count integer not null,
  constraint purchases_pk PRIMARY KEY (app_id, user_id, bought_at, "position", id),
  constraint purchases_user_fk FOREIGN KEY (app_id, user_id) REFERENCES users(app_id, id) ON DELETE CASCADE
);

create table schedule_slots (
  app_id uuid not null,
  name text not null,
  slot timestamp with time zone not null,
  constraint schedule_slots_pk PRIMARY KEY (app_id, name)
);

create table schema_migrations (
  version integer not null,
  name text not null,
  checksum text not null,
  applied_at timestamp with time zone not null,
  constraint schema_migrations_pk PRIMARY KEY (version)
);

create table segments (
  app_id uuid not null,
  id uuid not null,
  name text not null,
  description text,
  filters jsonb not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint segments_description_length CHECK (((length(description) >= 1) AND (length(description) <= 255))),
  constraint segments_filters_listed CHECK ((jsonb_typeof(filters) = 'array'::text)),
  constraint segments_name_length CHECK (((length(name) >= 1) AND (length(name) <= 128))),
  constraint segments_name_unique UNIQUE (app_id, name),
  constraint segments_pk PRIMARY KEY (app_id, id)
);
CREATE INDEX segments_by_age ON public.segments USING btree (app_id, created_at, id);

create table server_nodes (
  id uuid not null,
  counts text not null,
  lease_until double precision not null,
  constraint server_nodes_counts_known CHECK ((counts = ANY (ARRAY['local'::text, 'shared'::text]))),
  constraint server_nodes_pk PRIMARY KEY (id)
);

create table subscription_activity (
  app_id uuid not null,
  subscription_id uuid not null,
  last_active timestamp with time zone not null,
  session_count bigint not null default 0,
  session_time bigint not null default 0,
  constraint subscription_activity_count_safe CHECK (((session_count >= 0) AND (session_count <= '9007199254740991'::bigint))),
  constraint subscription_activity_pk PRIMARY KEY (app_id, subscription_id),
  constraint subscription_activity_subscription_fk FOREIGN KEY (app_id, subscription_id) REFERENCES subscriptions(app_id, id) ON DELETE CASCADE,
  constraint subscription_activity_time_safe CHECK (((session_time >= 0) AND (session_time <= '9007199254740991'::bigint)))
) with (fillfactor=70);

create table subscriptions (
  app_id uuid not null,
  id uuid not null,
  user_id uuid not null,
  type text not null,
  type_spelling text not null,
  token text,
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
  language text,
  timezone_seconds integer,
  ad_id text,
  country text,
  lat double precision,
  long double precision,
  badge_count integer,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint subscriptions_pk PRIMARY KEY (app_id, id),
  constraint subscriptions_token_hashed CHECK (((token IS NULL) = (token_hash IS NULL))),
  constraint subscriptions_token_unique UNIQUE (app_id, type, token_hash)
);
CREATE INDEX subscriptions_by_user ON public.subscriptions USING btree (app_id, user_id);

create table templates (
  app_id uuid not null,
  id uuid not null,
  name text not null,
  channel text not null,
  content jsonb not null,
  email_html text,
  dynamic_content text,
  revision integer not null default 1,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint templates_channel_known CHECK ((channel = ANY (ARRAY['push'::text, 'email'::text, 'sms'::text]))),
  constraint templates_name_length CHECK (((length(name) >= 1) AND (length(name) <= 128))),
  constraint templates_pk PRIMARY KEY (app_id, id)
);
CREATE INDEX templates_by_age ON public.templates USING btree (app_id, created_at, id);
CREATE INDEX templates_by_channel ON public.templates USING btree (app_id, channel, created_at, id);

create table user_activity (
  app_id uuid not null,
  user_id uuid not null,
  last_active timestamp with time zone not null,
  session_count bigint not null default 0,
  session_time bigint not null default 0,
  constraint user_activity_count_safe CHECK (((session_count >= 0) AND (session_count <= '9007199254740991'::bigint))),
  constraint user_activity_pk PRIMARY KEY (app_id, user_id),
  constraint user_activity_time_safe CHECK (((session_time >= 0) AND (session_time <= '9007199254740991'::bigint))),
  constraint user_activity_user_fk FOREIGN KEY (app_id, user_id) REFERENCES users(app_id, id) ON DELETE CASCADE
) with (fillfactor=70);

create table users (
  app_id uuid not null,
  id uuid not null,
  tags jsonb not null default '{}'::jsonb,
  language text,
  timezone_id text,
  country text,
  lat double precision,
  long double precision,
  ip text,
  test_user_name text,
  first_active timestamp with time zone not null,
  amount_spent numeric not null default 0,
  alias_count smallint not null default 0,
  subscription_count smallint not null default 0,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint users_alias_limit CHECK (((alias_count >= 0) AND (alias_count <= 10))),
  constraint users_amount_finite CHECK (((amount_spent >= ('-9007199254740991'::bigint)::numeric) AND (amount_spent <= ('9007199254740991'::bigint)::numeric))),
  constraint users_pk PRIMARY KEY (app_id, id),
  constraint users_subscription_limit CHECK (((subscription_count >= 0) AND (subscription_count <= 20)))
);

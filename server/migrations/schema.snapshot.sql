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

create table app_administrators (
  app_id uuid not null,
  id uuid not null,
  email text,
  webhook_url text,
  webhook_secret text,
  created_at timestamp with time zone not null,
  constraint app_administrators_email_length CHECK (((length(email) >= 3) AND (length(email) <= 254))),
  constraint app_administrators_email_unique UNIQUE (app_id, email),
  constraint app_administrators_pk PRIMARY KEY (app_id, id),
  constraint app_administrators_reachable CHECK (((email IS NOT NULL) OR (webhook_url IS NOT NULL))),
  constraint app_administrators_url_length CHECK (((length(webhook_url) >= 9) AND (length(webhook_url) <= 2048))),
  constraint app_administrators_url_signed CHECK (((webhook_url IS NULL) = (webhook_secret IS NULL))),
  constraint app_administrators_url_unique UNIQUE (app_id, webhook_url)
);

create table app_sending (
  app_id uuid not null,
  used bigint not null default 0,
  counted_at timestamp with time zone,
  disabled_at timestamp with time zone,
  enabled_at timestamp with time zone,
  paused_at timestamp with time zone,
  constraint app_sending_pk PRIMARY KEY (app_id),
  constraint app_sending_used_counted CHECK ((used >= 0))
) with (fillfactor=50);

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
  sms_settings jsonb,
  email_settings jsonb,
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

create table caught_mail (
  app_id uuid not null,
  id uuid not null,
  at timestamp with time zone not null,
  from_address text not null,
  to_address text not null,
  subject text not null,
  message_id uuid,
  raw bytea not null,
  constraint caught_mail_pk PRIMARY KEY (app_id, id)
);
CREATE INDEX caught_mail_by_age ON public.caught_mail USING btree (app_id, at, id);

create table deliveries (
  app_id uuid not null,
  expand_at timestamp with time zone not null,
  message_id uuid not null,
  subscription_id uuid not null,
  run_id uuid not null default '00000000-0000-0000-0000-000000000000'::uuid,
  user_id uuid not null,
  platform text not null,
  line text not null,
  state text not null,
  reason text,
  due_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  attempts smallint not null default 0,
  fence bigint,
  provider_ref text,
  settled_at timestamp with time zone,
  received_at timestamp with time zone,
  clicked_at timestamp with time zone,
  receipt text,
  sending_domain text,
  inbox_provider text,
  delivered_at timestamp with time zone,
  bounced_at timestamp with time zone,
  complained_at timestamp with time zone,
  opened_at timestamp with time zone,
  unsubscribed_at timestamp with time zone,
  step integer not null default 0,
  constraint deliveries_pk PRIMARY KEY (app_id, expand_at, message_id, subscription_id, run_id),
  constraint deliveries_receipt_known CHECK ((receipt = ANY (ARRAY['delivered'::text, 'failed'::text, 'unknown'::text]))),
  constraint deliveries_settled_when CHECK (((settled_at IS NULL) = (state = 'pending'::text))),
  constraint deliveries_state_known CHECK ((state = ANY (ARRAY['pending'::text, 'sent'::text, 'failed'::text, 'skipped'::text, 'unknown'::text, 'expired'::text, 'canceled'::text])))
) partition by RANGE (expand_at);
CREATE INDEX deliveries_by_email ON ONLY public.deliveries USING btree (app_id, provider_ref) WHERE ((platform = 'Email'::text) AND (provider_ref IS NOT NULL));
CREATE INDEX deliveries_by_receipt ON ONLY public.deliveries USING btree (app_id, provider_ref) WHERE ((platform = 'SMS'::text) AND (provider_ref IS NOT NULL));
CREATE INDEX deliveries_by_run ON ONLY public.deliveries USING btree (app_id, message_id, run_id) WHERE (run_id <> '00000000-0000-0000-0000-000000000000'::uuid);
CREATE INDEX deliveries_due ON ONLY public.deliveries USING btree (app_id, line, due_at) WHERE (state = 'pending'::text);
CREATE INDEX deliveries_in_order ON ONLY public.deliveries USING btree (app_id, run_id, subscription_id, step) WHERE ((state = 'pending'::text) AND (step > 0));
CREATE INDEX deliveries_unknown ON ONLY public.deliveries USING btree (app_id, message_id) WHERE (state = 'unknown'::text);

create table delivery_events (
  app_id uuid not null,
  webhook_id uuid not null,
  at timestamp with time zone not null,
  id uuid not null,
  kind text not null,
  message_id uuid,
  subscription_id uuid,
  user_id uuid,
  platform text,
  reason text,
  batch_id uuid,
  count bigint,
  constraint delivery_events_kind_known CHECK ((kind = ANY (ARRAY['sent'::text, 'failed'::text, 'delivered'::text, 'received'::text, 'opened'::text, 'clicked'::text, 'bounced'::text, 'complained'::text, 'unsubscribed'::text, 'message.unknown'::text]))),
  constraint delivery_events_of_message CHECK ((((kind = 'message.unknown'::text) = (count IS NOT NULL)) AND ((kind = 'message.unknown'::text) = (subscription_id IS NULL)) AND ((subscription_id IS NULL) = (user_id IS NULL)) AND ((subscription_id IS NULL) = (platform IS NULL)))),
  constraint delivery_events_pk PRIMARY KEY (app_id, webhook_id, at, id)
);
CREATE INDEX delivery_events_travelling ON public.delivery_events USING btree (app_id, webhook_id, batch_id) WHERE (batch_id IS NOT NULL);

create table delivery_settings (
  app_id uuid not null,
  quiet_hours jsonb,
  frequency_caps jsonb not null default '[]'::jsonb,
  throttle_per_minute integer,
  retention_days integer,
  limit_factor integer not null default 10,
  updated_at timestamp with time zone not null,
  constraint delivery_settings_caps_listed CHECK ((jsonb_typeof(frequency_caps) = 'array'::text)),
  constraint delivery_settings_factor_known CHECK (((limit_factor >= 1) AND (limit_factor <= 100000))),
  constraint delivery_settings_pk PRIMARY KEY (app_id),
  constraint delivery_settings_retention_positive CHECK ((retention_days > 0)),
  constraint delivery_settings_throttle_positive CHECK ((throttle_per_minute > 0))
);

create table email_domains (
  app_id uuid not null,
  domain text not null,
  state text not null,
  activated_by text,
  return_path_host text,
  tracking_host text,
  dkim_keys jsonb not null default '[]'::jsonb,
  checks jsonb not null default '{}'::jsonb,
  checked_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint email_domains_activated_by_known CHECK ((activated_by = ANY (ARRAY['check'::text, 'force'::text, 'catch'::text, 'load'::text]))),
  constraint email_domains_form CHECK (((domain = lower(domain)) AND ((length(domain) >= 1) AND (length(domain) <= 253)))),
  constraint email_domains_pk PRIMARY KEY (app_id, domain),
  constraint email_domains_state_known CHECK ((state = ANY (ARRAY['pending'::text, 'active'::text, 'paused'::text])))
);

create table email_event_receipts (
  app_id uuid not null,
  source text not null,
  event text not null,
  taken_at timestamp with time zone not null,
  is_done boolean not null default false,
  constraint email_event_receipts_pk PRIMARY KEY (app_id, source, event)
);
CREATE INDEX email_event_receipts_old ON public.email_event_receipts USING btree (app_id, taken_at);

create table email_event_sources (
  app_id uuid not null,
  source text not null,
  settings jsonb not null,
  secret text,
  updated_at timestamp with time zone not null,
  constraint email_event_sources_known CHECK ((source = ANY (ARRAY['ses'::text, 'mailgun'::text, 'sendgrid'::text, 'postmark'::text]))),
  constraint email_event_sources_pk PRIMARY KEY (app_id, source)
);

create table email_instants (
  app_id uuid not null,
  domain text not null,
  at timestamp with time zone not null,
  provider text not null,
  part smallint not null,
  sent bigint not null default 0,
  delivered bigint not null default 0,
  opened bigint not null default 0,
  clicked bigint not null default 0,
  unique_opened bigint not null default 0,
  unique_clicked bigint not null default 0,
  failed bigint not null default 0,
  bounced bigint not null default 0,
  complained bigint not null default 0,
  constraint email_instants_pk PRIMARY KEY (app_id, domain, at, provider, part)
) partition by RANGE (at);

create table email_pauses (
  app_id uuid not null,
  paused_at timestamp with time zone,
  detail jsonb not null,
  resumed_at timestamp with time zone,
  constraint email_pauses_pk PRIMARY KEY (app_id)
);

create table email_rollups (
  app_id uuid not null,
  domain text not null,
  unit text not null,
  starts_at timestamp with time zone not null,
  provider text not null,
  part smallint not null,
  sent bigint not null default 0,
  delivered bigint not null default 0,
  opened bigint not null default 0,
  clicked bigint not null default 0,
  unique_opened bigint not null default 0,
  unique_clicked bigint not null default 0,
  failed bigint not null default 0,
  bounced bigint not null default 0,
  complained bigint not null default 0,
  constraint email_rollups_pk PRIMARY KEY (app_id, domain, unit, starts_at, provider, part),
  constraint email_rollups_unit_known CHECK ((unit = ANY (ARRAY['hour'::text, 'day'::text, 'month'::text])))
) with (fillfactor=80);
CREATE INDEX email_rollups_by_age ON public.email_rollups USING btree (app_id, starts_at);

create table event_keys (
  app_id uuid not null,
  key uuid not null,
  taken_at timestamp with time zone not null,
  constraint event_keys_pk PRIMARY KEY (app_id, key)
) with (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000);
CREATE INDEX event_keys_by_age ON public.event_keys USING btree (app_id, taken_at);

create table event_webhooks (
  app_id uuid not null,
  id uuid not null,
  url text not null,
  kinds text[] not null,
  secret text not null,
  previous_secret text,
  previous_until timestamp with time zone,
  disabled_at timestamp with time zone,
  disabled_reason text,
  failing_since timestamp with time zone,
  failures integer not null default 0,
  last_failure text,
  next_try_at timestamp with time zone,
  dropped bigint not null default 0,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint event_webhooks_disabled_why CHECK (((disabled_at IS NULL) = (disabled_reason IS NULL))),
  constraint event_webhooks_failing_since CHECK (((failing_since IS NULL) = (failures = 0))),
  constraint event_webhooks_pk PRIMARY KEY (app_id, id),
  constraint event_webhooks_previous_until CHECK (((previous_secret IS NULL) = (previous_until IS NULL))),
  constraint event_webhooks_reason_known CHECK ((disabled_reason = ANY (ARRAY['gone'::text, 'failing'::text, 'switched off'::text])))
);

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

create table export_chunks (
  app_id uuid not null,
  export_id uuid not null,
  n integer not null,
  content bytea not null,
  constraint export_chunks_export_fk FOREIGN KEY (app_id, export_id) REFERENCES exports(app_id, id) ON DELETE CASCADE,
  constraint export_chunks_pk PRIMARY KEY (app_id, export_id, n),
  constraint export_chunks_size CHECK (((octet_length(content) >= 1) AND (octet_length(content) <= 1048576)))
);

create table exports (
  app_id uuid not null,
  id uuid not null,
  kind text not null,
  secret_hash bytea not null,
  request jsonb not null,
  state text not null default 'making'::text,
  progress jsonb,
  chunk_count integer not null default 0,
  byte_count bigint not null default 0,
  row_count bigint not null default 0,
  requested_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  constraint exports_ended_when CHECK (((ended_at IS NULL) = (state = 'making'::text))),
  constraint exports_kind_known CHECK ((kind = ANY (ARRAY['subscriptions'::text, 'history'::text, 'activity'::text]))),
  constraint exports_pk PRIMARY KEY (app_id, id),
  constraint exports_state_known CHECK ((state = ANY (ARRAY['making'::text, 'ready'::text, 'failed'::text])))
);
CREATE INDEX exports_by_age ON public.exports USING btree (app_id, ended_at);
CREATE UNIQUE INDEX exports_making ON public.exports USING btree (app_id, kind) WHERE (state = 'making'::text);

create table in_app_counts (
  app_id uuid not null,
  in_app_message_id uuid not null,
  what text not null,
  part text not null,
  label text not null,
  total bigint not null,
  uniques bigint not null,
  constraint in_app_counts_part_known CHECK ((part = ANY (ARRAY['message'::text, 'variant'::text, 'target'::text]))),
  constraint in_app_counts_pk PRIMARY KEY (app_id, in_app_message_id, what, part, label),
  constraint in_app_counts_total_safe CHECK (((total >= 0) AND (total <= '9007199254740991'::bigint))),
  constraint in_app_counts_uniques_safe CHECK (((uniques >= 0) AND (uniques <= total))),
  constraint in_app_counts_what_known CHECK ((what = ANY (ARRAY['impression'::text, 'click'::text, 'page'::text])))
) with (fillfactor=70);

create table in_app_grants (
  app_id uuid not null,
  user_id uuid not null,
  in_app_message_id uuid not null,
  expires_at timestamp with time zone not null,
  constraint in_app_grants_pk PRIMARY KEY (app_id, user_id, in_app_message_id)
);
CREATE INDEX in_app_grants_by_expiry ON public.in_app_grants USING btree (app_id, expires_at);
CREATE INDEX in_app_grants_by_message ON public.in_app_grants USING btree (app_id, in_app_message_id);

create table in_app_messages (
  app_id uuid not null,
  id uuid not null,
  name text not null,
  state text not null,
  display_location text not null,
  display_duration double precision,
  remove_height_margin boolean not null,
  remove_width_margin boolean not null,
  triggers jsonb not null,
  audience text not null,
  included_segments uuid[] not null,
  excluded_segments uuid[] not null,
  platforms text[] not null,
  redisplay_limit integer,
  redisplay_delay integer,
  start_time timestamp with time zone,
  end_time timestamp with time zone,
  has_liquid boolean not null,
  click_labels text[] not null,
  page_labels text[] not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint in_app_messages_audience_known CHECK ((audience = ANY (ARRAY['segments'::text, 'granted'::text]))),
  constraint in_app_messages_location_known CHECK ((display_location = ANY (ARRAY['top'::text, 'center'::text, 'bottom'::text, 'full'::text]))),
  constraint in_app_messages_name_length CHECK (((length(name) >= 1) AND (length(name) <= 128))),
  constraint in_app_messages_pk PRIMARY KEY (app_id, id),
  constraint in_app_messages_redisplay_whole CHECK (((redisplay_limit IS NULL) = (redisplay_delay IS NULL))),
  constraint in_app_messages_state_known CHECK ((state = ANY (ARRAY['draft'::text, 'live'::text, 'paused'::text, 'archived'::text]))),
  constraint in_app_messages_window CHECK ((start_time < end_time))
);
CREATE INDEX in_app_messages_by_age ON public.in_app_messages USING btree (app_id, created_at, id);
CREATE INDEX in_app_messages_live ON public.in_app_messages USING btree (app_id) WHERE (state = 'live'::text);

create table in_app_seen (
  app_id uuid not null,
  in_app_message_id uuid not null,
  subscription_id uuid not null,
  what text not null,
  part text not null,
  label text not null,
  user_id uuid not null,
  constraint in_app_seen_pk PRIMARY KEY (app_id, in_app_message_id, subscription_id, what, part, label)
);
CREATE INDEX in_app_seen_by_user ON public.in_app_seen USING btree (app_id, user_id);

create table in_app_variants (
  app_id uuid not null,
  in_app_message_id uuid not null,
  language text not null,
  id uuid not null,
  content jsonb not null,
  constraint in_app_variants_id_unique UNIQUE (app_id, id),
  constraint in_app_variants_message_fk FOREIGN KEY (app_id, in_app_message_id) REFERENCES in_app_messages(app_id, id) ON DELETE CASCADE,
  constraint in_app_variants_pk PRIMARY KEY (app_id, in_app_message_id, language)
);

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
  lane text not null default 'bulk'::text,
  constraint jobs_key_length CHECK (((length(key) >= 1) AND (length(key) <= 512))),
  constraint jobs_key_unique UNIQUE (app_id, name, key),
  constraint jobs_lane_known CHECK ((lane = ANY (ARRAY['direct'::text, 'bulk'::text]))),
  constraint jobs_lease_while_running CHECK (((state = 'running'::text) = (lease_until IS NOT NULL))),
  constraint jobs_name_length CHECK (((length(name) >= 1) AND (length(name) <= 128))),
  constraint jobs_parked_when CHECK (((state = 'parked'::text) = (parked_at IS NOT NULL))),
  constraint jobs_pk PRIMARY KEY (app_id, id),
  constraint jobs_state_known CHECK ((state = ANY (ARRAY['ready'::text, 'running'::text, 'parked'::text])))
) with (autovacuum_analyze_scale_factor=0.02, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000, vacuum_truncate=false);
CREATE INDEX jobs_due ON public.jobs USING btree (app_id, lane, run_at) WHERE (state = 'ready'::text);
CREATE INDEX jobs_parked ON public.jobs USING btree (app_id, parked_at) WHERE (state = 'parked'::text);
CREATE INDEX jobs_running ON public.jobs USING btree (app_id, lease_until) WHERE (state = 'running'::text);

create table journey_calls (
  app_id uuid not null,
  id uuid not null,
  journey_id uuid not null,
  node_id uuid not null,
  run_id uuid not null,
  user_id uuid not null,
  webhook_id uuid not null,
  called_at timestamp with time zone not null,
  due_at timestamp with time zone not null,
  attempts smallint not null default 0,
  constraint journey_calls_pk PRIMARY KEY (app_id, id)
);
CREATE INDEX journey_calls_due ON public.journey_calls USING btree (app_id, webhook_id, due_at);

create table journey_counts (
  app_id uuid not null,
  journey_id uuid not null,
  place_id uuid not null,
  fact text not null,
  part smallint not null,
  count bigint not null,
  constraint journey_counts_pk PRIMARY KEY (app_id, journey_id, place_id, fact, part)
);

create table journey_messages (
  app_id uuid not null,
  journey_id uuid not null,
  node_id uuid not null,
  day timestamp with time zone not null,
  template_id uuid not null,
  template_revision integer not null,
  message_id uuid not null,
  nth smallint not null default 0,
  constraint journey_messages_pk PRIMARY KEY (app_id, journey_id, node_id, day, template_id, template_revision, nth)
);

create table journey_passes (
  app_id uuid not null,
  journey_id uuid not null,
  user_id uuid not null,
  node_id uuid not null,
  day timestamp with time zone not null,
  passes integer not null,
  constraint journey_passes_pk PRIMARY KEY (app_id, journey_id, user_id, node_id)
);

create table journey_runs (
  app_id uuid not null,
  id uuid not null,
  journey_id uuid not null,
  user_id uuid not null,
  part smallint not null,
  slot uuid not null,
  state text not null default 'waiting'::text,
  node_id uuid,
  arrived_at timestamp with time zone,
  until_at timestamp with time zone,
  due_at timestamp with time zone,
  wants_exit boolean not null default false,
  entered_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  entry_event jsonb,
  path uuid[] not null default '{}'::uuid[],
  path_at timestamp with time zone[] not null default '{}'::timestamp with time zone[],
  met_events jsonb not null default '[]'::jsonb,
  exits_later boolean not null default false,
  constraint journey_runs_ended_when CHECK (((ended_at IS NULL) = (state = ANY (ARRAY['waiting'::text, 'barred'::text])))),
  constraint journey_runs_pk PRIMARY KEY (app_id, id),
  constraint journey_runs_slot_unique UNIQUE (app_id, journey_id, user_id, slot),
  constraint journey_runs_state_known CHECK ((state = ANY (ARRAY['waiting'::text, 'completed'::text, 'exited'::text, 'stopped'::text, 'barred'::text])))
) with (autovacuum_analyze_scale_factor=0.05, autovacuum_vacuum_scale_factor=0.05);
CREATE INDEX journey_runs_due ON public.journey_runs USING btree (app_id, journey_id, part, due_at) WHERE (due_at IS NOT NULL);

create table journey_uses (
  app_id uuid not null,
  kind text not null,
  used_id uuid not null,
  journey_id uuid not null,
  constraint journey_uses_journey_fk FOREIGN KEY (app_id, journey_id) REFERENCES journeys(app_id, id) ON DELETE CASCADE,
  constraint journey_uses_kind_known CHECK ((kind = ANY (ARRAY['segment'::text, 'template'::text, 'webhook'::text, 'iam'::text]))),
  constraint journey_uses_pk PRIMARY KEY (app_id, kind, used_id, journey_id)
);
CREATE INDEX journey_uses_by_journey ON public.journey_uses USING btree (app_id, journey_id);

create table journey_versions (
  app_id uuid not null,
  journey_id uuid not null,
  version integer not null,
  document jsonb not null,
  state text not null,
  fields text[] not null,
  changed_at timestamp with time zone not null,
  changed_by_kind text not null,
  changed_by_id uuid,
  constraint journey_versions_journey_fk FOREIGN KEY (app_id, journey_id) REFERENCES journeys(app_id, id) ON DELETE CASCADE,
  constraint journey_versions_pk PRIMARY KEY (app_id, journey_id, version)
);

create table journey_webhooks (
  app_id uuid not null,
  id uuid not null,
  name text not null,
  url text not null,
  secret text not null,
  previous_secret text,
  previous_until timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint journey_webhooks_name_length CHECK (((length(name) >= 1) AND (length(name) <= 128))),
  constraint journey_webhooks_pk PRIMARY KEY (app_id, id),
  constraint journey_webhooks_previous_until CHECK (((previous_secret IS NULL) = (previous_until IS NULL)))
);

create table journeys (
  app_id uuid not null,
  id uuid not null,
  document jsonb not null,
  state text not null,
  version integer not null,
  created_source text not null,
  schedule_error text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  started_at timestamp with time zone,
  archived_at timestamp with time zone,
  is_cleared boolean not null default false,
  entered_to uuid,
  constraint journeys_archived_when CHECK (((archived_at IS NOT NULL) = (state = 'archived'::text))),
  constraint journeys_description_length CHECK ((length((document ->> 'description'::text)) <= 1024)),
  constraint journeys_name_length CHECK (((length((document ->> 'name'::text)) >= 1) AND (length((document ->> 'name'::text)) <= 300))),
  constraint journeys_pk PRIMARY KEY (app_id, id),
  constraint journeys_started_when CHECK (((started_at IS NOT NULL) = (state = ANY (ARRAY['active'::text, 'archived'::text])))),
  constraint journeys_state_known CHECK ((state = ANY (ARRAY['draft'::text, 'scheduled'::text, 'processing'::text, 'active'::text, 'archived'::text])))
);
CREATE INDEX journeys_by_age ON public.journeys USING btree (app_id, created_at DESC, id DESC);

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
  stamp bigint not null,
  previous bigint,
  state text not null,
  idle_at double precision not null,
  constraint limit_counters_pk PRIMARY KEY (app_id, counter)
) with (fillfactor=70);

create table live_activity_tokens (
  app_id uuid not null,
  purpose text not null,
  name text not null,
  subscription_id uuid not null,
  token text not null,
  updated_at timestamp with time zone not null,
  constraint live_activity_tokens_name_length CHECK (((length(name) >= 1) AND (length(name) <= 256))),
  constraint live_activity_tokens_pk PRIMARY KEY (app_id, purpose, name, subscription_id),
  constraint live_activity_tokens_purpose_known CHECK ((purpose = ANY (ARRAY['start'::text, 'update'::text]))),
  constraint live_activity_tokens_subscription_fk FOREIGN KEY (app_id, subscription_id) REFERENCES subscriptions(app_id, id) ON DELETE CASCADE
);
CREATE INDEX live_activity_tokens_by_age ON public.live_activity_tokens USING btree (app_id, purpose, updated_at);
CREATE INDEX live_activity_tokens_by_subscription ON public.live_activity_tokens USING btree (app_id, subscription_id, updated_at);

create table loaded_facts (
  app_id uuid not null,
  email_id uuid not null,
  fact text not null,
  at timestamp with time zone not null,
  provider text not null,
  was_at timestamp with time zone,
  was_provider text,
  constraint loaded_facts_fact_known CHECK ((fact = ANY (ARRAY['sent'::text, 'delivered'::text, 'failed'::text, 'bounced'::text, 'complained'::text, 'unique_opened'::text, 'unique_clicked'::text]))),
  constraint loaded_facts_pk PRIMARY KEY (app_id, email_id, fact)
);
CREATE INDEX loaded_facts_by_age ON public.loaded_facts USING btree (app_id, at);

create table mail_hosts (
  domain text not null,
  provider text,
  fresh_until timestamp with time zone not null,
  constraint mail_hosts_pk PRIMARY KEY (domain)
);
CREATE INDEX mail_hosts_by_age ON public.mail_hosts USING btree (fresh_until);

create table message_counts (
  app_id uuid not null,
  message_id uuid not null,
  platform text not null,
  state text not null,
  reason text not null default ''::text,
  part smallint not null,
  count bigint not null,
  constraint message_counts_pk PRIMARY KEY (app_id, message_id, platform, state, reason, part)
) with (fillfactor=50);

create table message_keys (
  app_id uuid not null,
  name text not null,
  key uuid not null,
  message_id uuid not null,
  request_hash bytea not null,
  answer jsonb not null,
  taken_at timestamp with time zone not null,
  constraint message_keys_name_known CHECK ((name = ANY (ARRAY['idempotency_key'::text, 'external_id'::text]))),
  constraint message_keys_pk PRIMARY KEY (app_id, name, key)
);
CREATE INDEX message_keys_by_age ON public.message_keys USING btree (app_id, taken_at);

create table messages (
  app_id uuid not null,
  id uuid not null,
  channel text not null,
  kind smallint not null default 1,
  is_listed boolean not null default true,
  lane text not null,
  state text not null default 'scheduled'::text,
  name text,
  template_id uuid,
  audience jsonb not null,
  content jsonb not null,
  email_html text,
  options jsonb not null default '{}'::jsonb,
  queued_at timestamp with time zone not null,
  send_after timestamp with time zone not null,
  expand_at timestamp with time zone,
  expanded_to uuid,
  expanded_count bigint not null default 0,
  completed_at timestamp with time zone,
  canceled_at timestamp with time zone,
  throttled_to timestamp with time zone,
  email_html_by_language jsonb,
  unknowns_told_at timestamp with time zone,
  constraint messages_canceled_when CHECK (((canceled_at IS NOT NULL) = (state = 'canceled'::text))),
  constraint messages_channel_known CHECK ((channel = ANY (ARRAY['push'::text, 'email'::text, 'sms'::text]))),
  constraint messages_done_when CHECK (((completed_at IS NOT NULL) = (state = 'done'::text))),
  constraint messages_expanding_since CHECK (((state = ANY (ARRAY['scheduled'::text, 'canceled'::text])) OR (expand_at IS NOT NULL))),
  constraint messages_lane_known CHECK ((lane = ANY (ARRAY['direct'::text, 'bulk'::text]))),
  constraint messages_pk PRIMARY KEY (app_id, id),
  constraint messages_state_known CHECK ((state = ANY (ARRAY['scheduled'::text, 'expanding'::text, 'sending'::text, 'done'::text, 'canceled'::text])))
);
CREATE INDEX messages_by_age ON public.messages USING btree (app_id, queued_at, id);
CREATE INDEX messages_by_schedule ON public.messages USING btree (app_id, send_after, id);
CREATE INDEX messages_direct_waiting ON public.messages USING btree (app_id, send_after) WHERE ((state = 'scheduled'::text) AND (lane = 'direct'::text));
CREATE INDEX messages_under_way ON public.messages USING btree (app_id, id) WHERE (state = ANY (ARRAY['expanding'::text, 'sending'::text]));

create table notices (
  app_id uuid not null,
  id uuid not null,
  at timestamp with time zone not null,
  kind text not null,
  detail jsonb not null default '{}'::jsonb,
  administrator_id uuid,
  state text not null,
  settled_at timestamp with time zone,
  reason text,
  way text,
  constraint notices_pk PRIMARY KEY (app_id, id),
  constraint notices_state_known CHECK ((state = ANY (ARRAY['listed'::text, 'waiting'::text, 'sent'::text, 'failed'::text]))),
  constraint notices_way_known CHECK ((way = ANY (ARRAY['webhook'::text, 'mail'::text])))
);
CREATE INDEX notices_by_age ON public.notices USING btree (app_id, at DESC, id DESC);

create table organizations (
  id uuid not null,
  name text not null,
  created_at timestamp with time zone not null,
  constraint organizations_name_length CHECK (((length(name) >= 1) AND (length(name) <= 128))),
  constraint organizations_pk PRIMARY KEY (id)
);

create table outcome_counts (
  app_id uuid not null,
  name text not null,
  message_id uuid not null,
  hour timestamp with time zone not null,
  attribution text not null,
  platform text not null,
  count bigint not null,
  sum numeric not null,
  constraint outcome_counts_attribution_known CHECK ((attribution = ANY (ARRAY['direct'::text, 'influenced'::text, 'unattributed'::text]))),
  constraint outcome_counts_pk PRIMARY KEY (app_id, name, message_id, hour, attribution, platform)
) with (fillfactor=50);
CREATE INDEX outcome_counts_by_age ON public.outcome_counts USING btree (app_id, hour);

create table outcome_names (
  app_id uuid not null,
  name text not null,
  constraint outcome_names_length CHECK (((length(name) >= 1) AND (length(name) <= 128))),
  constraint outcome_names_pk PRIMARY KEY (app_id, name)
);

create table player_counts (
  app_id uuid not null,
  slot smallint not null,
  players bigint not null default 0,
  subscribed bigint not null default 0,
  messageable bigint not null default 0,
  constraint player_counts_pk PRIMARY KEY (app_id, slot)
) with (fillfactor=50);

create table provider_pauses (
  app_id uuid not null,
  provider text not null,
  reason text not null,
  is_misconfigured boolean not null,
  since timestamp with time zone not null,
  until timestamp with time zone not null,
  constraint provider_pauses_pk PRIMARY KEY (app_id, provider)
);

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

create table recent_sends (
  app_id uuid not null,
  channel text not null,
  user_id uuid not null,
  sends jsonb not null default '{}'::jsonb,
  updated_at timestamp with time zone not null,
  constraint recent_sends_pk PRIMARY KEY (app_id, channel, user_id)
) with (fillfactor=70);
CREATE INDEX recent_sends_by_age ON public.recent_sends USING btree (app_id, updated_at);

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

create table sending_usage (
  app_id uuid not null,
  second timestamp with time zone not null,
  count bigint not null,
  constraint sending_usage_counted CHECK ((count >= 0)),
  constraint sending_usage_pk PRIMARY KEY (app_id, second)
) with (autovacuum_vacuum_scale_factor=0.05, fillfactor=50);

create table server_nodes (
  id uuid not null,
  counts text not null,
  lease_until double precision not null,
  constraint server_nodes_counts_known CHECK ((counts = ANY (ARRAY['local'::text, 'shared'::text, 'gone'::text]))),
  constraint server_nodes_pk PRIMARY KEY (id)
);

create table server_sending (
  is_only boolean not null default true,
  paused_at timestamp with time zone,
  restored_at timestamp with time zone,
  discard_before timestamp with time zone,
  identity jsonb,
  constraint server_sending_only CHECK (is_only),
  constraint server_sending_pk PRIMARY KEY (is_only)
);

create table slices (
  app_id uuid not null,
  line text not null,
  fence bigint not null,
  expand_ats timestamp with time zone[] not null,
  message_ids uuid[] not null,
  subscription_ids uuid[] not null,
  run_ids uuid[] not null,
  provider_refs text[] not null,
  sending_domains text[] not null,
  inbox_providers text[] not null,
  constraint slices_pk PRIMARY KEY (app_id, line)
);

create table sms_receipts (
  app_id uuid not null,
  reference text not null,
  state text not null,
  reason text,
  received_at timestamp with time zone not null,
  constraint sms_receipts_pk PRIMARY KEY (app_id, reference),
  constraint sms_receipts_state_known CHECK ((state = ANY (ARRAY['delivered'::text, 'failed'::text, 'gone'::text, 'unknown'::text])))
);

create table soft_bounces (
  app_id uuid not null,
  address text not null,
  times timestamp with time zone[] not null,
  last_at timestamp with time zone not null,
  constraint soft_bounces_pk PRIMARY KEY (app_id, address)
);
CREATE INDEX soft_bounces_by_age ON public.soft_bounces USING btree (app_id, last_at);

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
  install_id uuid,
  constraint subscriptions_pk PRIMARY KEY (app_id, id),
  constraint subscriptions_token_hashed CHECK (((token IS NULL) = (token_hash IS NULL))),
  constraint subscriptions_token_unique UNIQUE (app_id, type, token_hash)
);
CREATE UNIQUE INDEX subscriptions_by_install ON public.subscriptions USING btree (app_id, install_id) WHERE (install_id IS NOT NULL);
CREATE INDEX subscriptions_by_user ON public.subscriptions USING btree (app_id, user_id);

create table suppressions (
  app_id uuid not null,
  address text not null,
  reason text not null,
  detail text,
  created_at timestamp with time zone not null,
  created_by uuid,
  constraint suppressions_pk PRIMARY KEY (app_id, address),
  constraint suppressions_reason_known CHECK ((reason = ANY (ARRAY['hard_bounce'::text, 'soft_bounces'::text, 'complaint'::text, 'unsubscribed'::text, 'manual'::text, 'imported'::text])))
);
CREATE INDEX suppressions_by_age ON public.suppressions USING btree (app_id, created_at, address);

create table template_suspensions (
  app_id uuid not null,
  fingerprint text not null,
  template_id uuid,
  message_id uuid not null,
  since timestamp with time zone not null,
  until timestamp with time zone not null,
  constraint template_suspensions_pk PRIMARY KEY (app_id, fingerprint)
);
CREATE INDEX template_suspensions_by_template ON public.template_suspensions USING btree (app_id, template_id);

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
  email_html_by_language jsonb,
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

create table user_news (
  app_id uuid not null,
  id uuid not null,
  user_id uuid not null,
  kind text not null,
  run_id uuid,
  event jsonb,
  at timestamp with time zone not null,
  constraint user_news_event_with_kind CHECK (((kind = 'event'::text) = (event IS NOT NULL))),
  constraint user_news_kind_known CHECK ((kind = ANY (ARRAY['change'::text, 'session'::text, 'event'::text, 'action'::text]))),
  constraint user_news_pk PRIMARY KEY (app_id, id)
) with (autovacuum_analyze_scale_factor=0.02, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000, vacuum_truncate=false);
CREATE INDEX user_news_by_age ON public.user_news USING btree (app_id, at);

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

create table watches (
  app_id uuid not null,
  kind text not null,
  name text not null default ''::text,
  constraint watches_kind_known CHECK ((kind = ANY (ARRAY['change'::text, 'session'::text, 'event'::text, 'action'::text]))),
  constraint watches_name_of_event CHECK (((kind = 'event'::text) = (name <> ''::text))),
  constraint watches_pk PRIMARY KEY (app_id, kind, name)
);

-- The provider of an app's texts, in the words of the interface; null without one. Its secret is among the credentials.
alter table apps add column sms_settings jsonb;

-- What the provider reported of a text that it took: delivered, failed, or that it does not know.
alter table deliveries add column receipt text;
alter table deliveries add constraint deliveries_receipt_known check (receipt in ('delivered', 'failed', 'unknown'));

-- Receipts name a text by the provider's reference alone.
create index deliveries_by_receipt on deliveries (app_id, provider_ref) where platform = 'SMS' and provider_ref is not null;

-- Receipts that came before the reference was written down; each is taken away when its delivery is found, or after an hour.
create table sms_receipts (
  app_id uuid not null,
  reference text not null,
  state text not null,
  reason text,
  received_at timestamptz not null,
  constraint sms_receipts_pk primary key (app_id, reference),
  constraint sms_receipts_state_known check (state in ('delivered', 'failed', 'gone', 'unknown'))
);

-- Receivers that want to hear what becomes of messages.
create table event_webhooks (
  app_id uuid not null,
  id uuid not null,
  url text not null,
  kinds text[] not null,
  -- Sealed with SECRET_KEY. The one before it signs too, until then.
  secret text not null,
  previous_secret text,
  previous_until timestamptz,
  -- Set when we gave it up: `gone` because it said so, `failing` after days without a success.
  disabled_at timestamptz,
  disabled_reason text,
  -- Since when, how often in a row, for which reason, and when the next try is due. All null or 0 while it answers.
  failing_since timestamptz,
  failures integer not null default 0,
  last_failure text,
  next_try_at timestamptz,
  -- Events that were too old before they could be delivered.
  dropped bigint not null default 0,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint event_webhooks_pk primary key (app_id, id),
  constraint event_webhooks_disabled_why check ((disabled_at is null) = (disabled_reason is null)),
  constraint event_webhooks_reason_known check (disabled_reason in ('gone', 'failing', 'switched off')),
  constraint event_webhooks_previous_until check ((previous_secret is null) = (previous_until is null)),
  constraint event_webhooks_failing_since check ((failing_since is null) = (failures = 0))
);

-- What they have yet to be told: a row for each event and each receiver that wants it, so that a slow one holds up nobody else.
create table delivery_events (
  app_id uuid not null,
  webhook_id uuid not null,
  at timestamptz not null,
  -- Of the event: the same for all receivers.
  id uuid not null,
  kind text not null,
  -- Null where the event is about no message in particular.
  message_id uuid,
  subscription_id uuid not null,
  user_id uuid not null,
  platform text not null,
  reason text,
  -- The request that it travels in, until that is answered: another try is the same request.
  batch_id uuid,
  constraint delivery_events_pk primary key (app_id, webhook_id, at, id),
  constraint delivery_events_kind_known check (
    kind in ('sent', 'failed', 'delivered', 'received', 'opened', 'clicked', 'bounced', 'complained', 'unsubscribed'))
);

create index delivery_events_travelling on delivery_events (app_id, webhook_id, batch_id) where batch_id is not null;

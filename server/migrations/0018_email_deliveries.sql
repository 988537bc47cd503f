-- What is known of an email beside its state. A delivery by mail is named by `provider_ref` from the moment it is marked as
-- sending: bounces can come back before the answer to it does.
alter table deliveries
  -- Counted under these; both null for a test, which is counted nowhere.
  add column sending_domain text,
  add column inbox_provider text,
  add column delivered_at timestamptz,
  add column bounced_at timestamptz,
  add column complained_at timestamptz,
  add column opened_at timestamptz,
  add column unsubscribed_at timestamptz;

create index deliveries_by_email on deliveries (app_id, provider_ref) where platform = 'Email' and provider_ref is not null;

-- Deliveries of which nobody knows whether they arrived are told to administrators and event webhooks, once for a message and with
-- how many there are. Null again when somebody has sent them again.
alter table messages add column unknowns_told_at timestamptz;

-- An event about a message is about no subscription in particular.
alter table delivery_events
  add column count bigint,
  alter column subscription_id drop not null,
  alter column user_id drop not null,
  alter column platform drop not null,
  drop constraint delivery_events_kind_known,
  add constraint delivery_events_kind_known check (kind in ('sent', 'failed', 'delivered', 'received', 'opened', 'clicked', 'bounced',
    'complained', 'unsubscribed', 'message.unknown')),
  add constraint delivery_events_of_message check ((kind = 'message.unknown') = (count is not null)
    and (kind = 'message.unknown') = (subscription_id is null) and (subscription_id is null) = (user_id is null)
    and (subscription_id is null) = (platform is null));

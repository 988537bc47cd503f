-- What is being sent is written down once for a slice, not once for each of its deliveries: those wait as pending ones until it is
-- known what became of them. A line sends one slice at a time.
create table slices (
  app_id uuid not null,
  line text not null,
  fence bigint not null,
  begun_at timestamptz not null,
  expand_ats timestamptz[] not null,
  message_ids uuid[] not null,
  subscription_ids uuid[] not null,
  run_ids uuid[] not null,
  provider_refs text[] not null,
  sending_domains text[] not null,
  inbox_providers text[] not null,
  constraint slices_pk primary key (app_id, line)
);

-- Nobody is left who could say what became of these.
update deliveries set state = 'unknown', reason = 'interrupted', settled_at = due_at where state = 'sending';
insert into message_counts (app_id, message_id, platform, state, reason, part, count)
  select app_id, message_id, platform, 'unknown', 'interrupted', part, count from message_counts where state = 'sending'
  on conflict (app_id, message_id, platform, state, reason, part) do update set count = message_counts.count + excluded.count;
delete from message_counts where state = 'sending';

drop index deliveries_sending;
alter table deliveries drop constraint deliveries_settled_when, drop constraint deliveries_state_known;
alter table deliveries
  add constraint deliveries_settled_when check ((settled_at is null) = (state = 'pending')),
  add constraint deliveries_state_known
    check (state in ('pending', 'sent', 'failed', 'skipped', 'unknown', 'expired', 'canceled'));

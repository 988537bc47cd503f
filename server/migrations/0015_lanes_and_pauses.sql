-- What must not wait behind a large piece of work goes by a lane of its own, for which every worker keeps slots.
alter table jobs add column lane text not null default 'bulk';
alter table jobs add constraint jobs_lane_known check (lane in ('direct', 'bulk'));
drop index jobs_due;
create index jobs_due on jobs (app_id, lane, run_at) where state = 'ready';

-- Providers that take nothing of an app for a while: they asked for a pause, or refuse its credentials.
create table provider_pauses (
  app_id uuid not null,
  provider text not null,
  reason text not null,
  -- Ended by new credentials too, not by time alone.
  is_misconfigured boolean not null,
  since timestamptz not null,
  until timestamptz not null,
  constraint provider_pauses_pk primary key (app_id, provider)
);

-- When a user was last sent what, on a channel for which the app has a frequency cap. Changed under the lock of the row.
create table recent_sends (
  app_id uuid not null,
  channel text not null,
  user_id uuid not null,
  -- By message and subscription: when. Several devices of one user get one message.
  sends jsonb not null default '{}',
  updated_at timestamptz not null,
  constraint recent_sends_pk primary key (app_id, channel, user_id)
) with (fillfactor = 70);

create index recent_sends_by_age on recent_sends (app_id, updated_at);

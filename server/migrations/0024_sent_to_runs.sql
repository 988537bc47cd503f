-- What became of what a run was sent is asked by the run: its user's subscriptions of today need not be those that it was sent to.
create index deliveries_by_run on deliveries (app_id, message_id, run_id)
  where run_id <> '00000000-0000-0000-0000-000000000000';

-- Devices show a push message once. Who passes a send node more than once in a day is sent the next message of that day each time.
alter table journey_messages
  add column nth smallint not null default 0,
  drop constraint journey_messages_pk,
  add constraint journey_messages_pk primary key (app_id, journey_id, node_id, day, template_id, template_revision, nth);

-- How often a user passed a node on the last day on which they did. Kept only where they may pass it more than once in a day.
create table journey_passes (
  app_id uuid not null,
  journey_id uuid not null,
  user_id uuid not null,
  node_id uuid not null,
  day timestamptz not null,
  passes integer not null,
  constraint journey_passes_pk primary key (app_id, journey_id, user_id, node_id)
);

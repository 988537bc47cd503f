-- One user once on the way through a journey: where they are, and when it goes on. All that the engine knows is in these rows.
create table journey_runs (
  app_id uuid not null,
  id uuid not null,
  journey_id uuid not null,
  user_id uuid not null,
  -- Whoever moves runs takes those of one part, so that several can do so at once.
  part smallint not null,
  -- All zeros while it keeps its user from entering again, else the run's own id.
  slot uuid not null,
  -- `barred`: was in the audience before the journey began, which is for those who come after. `stopped`: the journey ended before.
  state text not null default 'waiting',
  -- Where it is; null before the first node and after the last.
  node_id uuid,
  -- Null while it is about to come to its node.
  arrived_at timestamptz,
  -- When it leaves its node if nothing happens before.
  until_at timestamptz,
  -- When it is to be looked at next: a run that is over is when its user may enter again.
  due_at timestamptz,
  -- One of the rules of early exit was met by something that happened.
  wants_exit boolean not null default false,
  entered_at timestamptz not null,
  ended_at timestamptz,
  -- The event by which it came in: id, name, at, properties.
  entry_event jsonb,
  -- The nodes and branches it came by, and when.
  path uuid[] not null default '{}',
  path_at timestamptz[] not null default '{}',
  constraint journey_runs_pk primary key (app_id, id),
  constraint journey_runs_slot_unique unique (app_id, journey_id, user_id, slot),
  constraint journey_runs_state_known check (state in ('waiting', 'completed', 'exited', 'stopped', 'barred')),
  constraint journey_runs_ended_when check ((ended_at is null) = (state in ('waiting', 'barred')))
)
with (
  -- Rows are rewritten with every step.
  autovacuum_vacuum_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.05
);

create index journey_runs_due on journey_runs (app_id, journey_id, part, due_at) where due_at is not null;

-- How far an activation has come: whether what is left of an earlier one is gone, and the last subscription that was looked at.
alter table journeys
  add column is_cleared boolean not null default false,
  add column entered_to uuid;

-- The hidden message of a send node for one day and one version of its template.
create table journey_messages (
  app_id uuid not null,
  journey_id uuid not null,
  node_id uuid not null,
  day timestamptz not null,
  template_id uuid not null,
  template_revision integer not null,
  message_id uuid not null,
  constraint journey_messages_pk primary key (app_id, journey_id, node_id, day, template_id, template_revision)
);

-- What a receiver of send_webhook is still to be told.
create table journey_calls (
  app_id uuid not null,
  id uuid not null,
  journey_id uuid not null,
  node_id uuid not null,
  run_id uuid not null,
  user_id uuid not null,
  webhook_id uuid not null,
  called_at timestamptz not null,
  due_at timestamptz not null,
  attempts smallint not null default 0,
  constraint journey_calls_pk primary key (app_id, id)
);

create index journey_calls_due on journey_calls (app_id, webhook_id, due_at);

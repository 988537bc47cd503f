-- Background work. A finished job is deleted, so the table stays as small as what is left to do.
create table jobs (
  app_id uuid not null,
  -- Tells this job from an earlier one of the same key, whose worker may still think it holds it.
  id uuid not null,
  name text not null,
  key text not null,
  payload jsonb not null default '{}',
  state text not null default 'ready',
  -- Business time: when the work is due.
  run_at timestamptz not null,
  -- Asked for once more while it was running: it runs again instead of ending.
  again_at timestamptz,
  -- Tries that ended with an error, and leases that ran out without an answer.
  attempts integer not null default 0,
  crashes integer not null default 0,
  -- Grows with each claim; what a worker writes about a job counts only with the number it was given.
  fence bigint not null default 0,
  -- Lease time, never virtual.
  lease_until timestamptz,
  last_error text,
  parked_at timestamptz,
  enqueued_at timestamptz not null,
  constraint jobs_pk primary key (app_id, id),
  constraint jobs_key_unique unique (app_id, name, key),
  constraint jobs_name_length check (length(name) between 1 and 128),
  constraint jobs_key_length check (length(key) between 1 and 512),
  constraint jobs_state_known check (state in ('ready', 'running', 'parked')),
  constraint jobs_lease_while_running check ((state = 'running') = (lease_until is not null)),
  constraint jobs_parked_when check ((state = 'parked') = (parked_at is not null))
)
with (
  -- Every row is written, claimed and deleted: a fifth of a large table is too late to begin cleaning.
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.02,
  -- A table cut down to no pages makes PostgreSQL keep plans that read it from end to end; the next burst would pay.
  vacuum_truncate = false
);

-- There is no index on run_at alone: the planner would take it for a claim and throw away every other app's jobs.
-- Each state has its own, so that a claim never walks past what is running or parked.
create index jobs_due on jobs (app_id, run_at) where state = 'ready';
create index jobs_running on jobs (app_id, lease_until) where state = 'running';
create index jobs_parked on jobs (app_id, parked_at) where state = 'parked';

-- The newest slot of each schedule that was handed out; whoever moves it forward enqueues the run.
create table schedule_slots (
  app_id uuid not null,
  name text not null,
  slot timestamptz not null,
  constraint schedule_slots_pk primary key (app_id, name)
);

-- Work that one node does for all of them, for as long as it keeps renewing its lease.
create table leaders (
  app_id uuid not null,
  name text not null,
  holder uuid not null,
  lease_until timestamptz not null,
  constraint leaders_pk primary key (app_id, name)
);

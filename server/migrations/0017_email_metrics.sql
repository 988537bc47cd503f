-- What became of email, by sending domain and inbox provider. Only ever added to: what is asked for is a sum.

-- One row for each instant at which something was counted. Written by the million: no foreign keys, one partition per month,
-- and old months are dropped whole (storage/partitions.ts makes them). Read only for the hours that a window cuts in two.
create table email_instants (
  app_id uuid not null,
  domain text not null,
  at timestamptz not null,
  provider text not null,
  -- Writers that must not wait for each other have parts of their own; the sum over them is the count.
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
  constraint email_instants_pk primary key (app_id, domain, at, provider, part)
) partition by range (at);

-- The same, summed up by hour, day and month (UTC), in the statement that writes the instants.
create table email_rollups (
  app_id uuid not null,
  domain text not null,
  unit text not null,
  starts_at timestamptz not null,
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
  constraint email_rollups_pk primary key (app_id, domain, unit, starts_at, provider, part),
  constraint email_rollups_unit_known check (unit in ('hour', 'day', 'month'))
) with (
  -- The rows of the present are written over and over, those of the past never again.
  fillfactor = 80
);

create index email_rollups_by_age on email_rollups (app_id, starts_at);

-- Of emails whose events were loaded: what counts once, when it first happened and where it was counted.
create table loaded_facts (
  app_id uuid not null,
  -- Made of the domain, the message and the recipient.
  email_id uuid not null,
  fact text not null,
  at timestamptz not null,
  provider text collate "C" not null,
  -- Where it was counted before it turned out to have happened earlier.
  was_at timestamptz,
  was_provider text,
  constraint loaded_facts_pk primary key (app_id, email_id, fact),
  constraint loaded_facts_fact_known check (
    fact in ('sent', 'delivered', 'failed', 'bounced', 'complained', 'unique_opened', 'unique_clicked'))
);

create index loaded_facts_by_age on loaded_facts (app_id, at);

-- Whose the mail hosts of a domain are. DNS says the same to every app.
create table mail_hosts (
  domain text not null,
  -- Null where they say nothing.
  provider text,
  fresh_until timestamptz not null,
  constraint mail_hosts_pk primary key (domain)
);

create index mail_hosts_by_age on mail_hosts (fresh_until);

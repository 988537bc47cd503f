-- Ways of users through several steps. What an author wrote is one document, in the words of the interface: it is read, changed
-- and kept in older versions as a whole.
create table journeys (
  app_id uuid not null,
  id uuid not null,
  document jsonb not null,
  state text not null,
  -- Counts what authors changed, not what the server did; the concurrency key is made of it.
  version integer not null,
  created_source text not null,
  -- Why the start at its time did not happen.
  schedule_error text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- When it became active.
  started_at timestamptz,
  archived_at timestamptz,
  constraint journeys_pk primary key (app_id, id),
  constraint journeys_name_length check (length(document ->> 'name') between 1 and 300),
  constraint journeys_description_length check (length(document ->> 'description') <= 1024),
  constraint journeys_state_known check (state in ('draft', 'scheduled', 'processing', 'active', 'archived')),
  constraint journeys_started_when check ((started_at is not null) = (state in ('active', 'archived'))),
  constraint journeys_archived_when check ((archived_at is not null) = (state = 'archived'))
);

create index journeys_by_age on journeys (app_id, created_at desc, id desc);

-- Every version that an author made, and who it was.
create table journey_versions (
  app_id uuid not null,
  journey_id uuid not null,
  version integer not null,
  document jsonb not null,
  state text not null,
  -- What is different from the version before.
  fields text[] not null,
  changed_at timestamptz not null,
  changed_by_kind text not null,
  changed_by_id uuid,
  constraint journey_versions_pk primary key (app_id, journey_id, version),
  constraint journey_versions_journey_fk foreign key (app_id, journey_id) references journeys (app_id, id) on delete cascade
);

-- What a journey refers to, so that whoever wants to delete such a thing finds out by one look.
create table journey_uses (
  app_id uuid not null,
  kind text not null,
  used_id uuid not null,
  journey_id uuid not null,
  constraint journey_uses_pk primary key (app_id, kind, used_id, journey_id),
  constraint journey_uses_kind_known check (kind in ('segment', 'template', 'webhook', 'iam')),
  constraint journey_uses_journey_fk foreign key (app_id, journey_id) references journeys (app_id, id) on delete cascade
);

create index journey_uses_by_journey on journey_uses (app_id, journey_id);

-- Receivers of send_webhook.
create table journey_webhooks (
  app_id uuid not null,
  id uuid not null,
  name text not null,
  url text not null,
  -- Sealed with SECRET_KEY. The one before it signs too, until then.
  secret text not null,
  previous_secret text,
  previous_until timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint journey_webhooks_pk primary key (app_id, id),
  constraint journey_webhooks_name_length check (length(name) between 1 and 128),
  constraint journey_webhooks_previous_until check ((previous_secret is null) = (previous_until is null))
);

-- How many came by, and what became of them: of the journey, of each node, of each branch, which is the place. Spread over
-- several parts, so that those who count at the same time do not wait for each other.
create table journey_counts (
  app_id uuid not null,
  journey_id uuid not null,
  place_id uuid not null,
  fact text not null,
  part smallint not null,
  count bigint not null,
  constraint journey_counts_pk primary key (app_id, journey_id, place_id, fact, part)
);

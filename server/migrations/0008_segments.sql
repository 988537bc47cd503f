-- Audiences that a customer described and named. The default ones are in every app by rule and have no row.
create table segments (
  app_id uuid not null,
  id uuid not null,
  name text not null,
  description text,
  -- As they were given; read again each time, so that a segment means what the language means.
  filters jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint segments_pk primary key (app_id, id),
  constraint segments_name_unique unique (app_id, name),
  constraint segments_name_length check (length(name) between 1 and 128),
  constraint segments_description_length check (length(description) between 1 and 255),
  constraint segments_filters_listed check (jsonb_typeof(filters) = 'array')
);

create index segments_by_age on segments (app_id, created_at, id);

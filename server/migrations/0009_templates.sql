create table templates (
  app_id uuid not null,
  id uuid not null,
  name text not null,
  channel text not null,
  content jsonb not null,
  -- What the MJML of content's email_body was compiled to; null where that is HTML already.
  email_html text,
  -- The rows that Liquid knows as dynamic_content, as given.
  dynamic_content text,
  -- Grows with each change: a change that was worked out from an older state is not written.
  revision integer not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint templates_pk primary key (app_id, id),
  constraint templates_name_length check (length(name) between 1 and 128),
  constraint templates_channel_known check (channel in ('push', 'email', 'sms'))
);

-- The order of the list, and of the list of one channel.
create index templates_by_age on templates (app_id, created_at, id);
create index templates_by_channel on templates (app_id, channel, created_at, id);

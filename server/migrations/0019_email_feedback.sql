-- Providers of email that tell an app what became of its mail, and what their word is known by.
create table email_event_sources (
  app_id uuid not null,
  source text not null,
  settings jsonb not null,
  -- Sealed with SECRET_KEY; null where all that is needed is public.
  secret text,
  updated_at timestamptz not null,
  constraint email_event_sources_pk primary key (app_id, source),
  constraint email_event_sources_known check (source in ('ses', 'mailgun', 'sendgrid', 'postmark'))
);

-- What they have told, so that each event counts once. One that was taken and not done was lost on the way: it may come again.
create table email_event_receipts (
  app_id uuid not null,
  source text not null,
  -- A hash of the provider's own name for the event, or for the request.
  event text not null,
  taken_at timestamptz not null,
  is_done boolean not null default false,
  constraint email_event_receipts_pk primary key (app_id, source, event)
);

create index email_event_receipts_old on email_event_receipts (app_id, taken_at);

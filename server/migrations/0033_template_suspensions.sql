-- Content that kept hitting its time limit when it was rendered. Kept by what it says, so that a template that is edited is free of it.
create table template_suspensions (
  app_id uuid not null,
  fingerprint text not null,
  -- What it was when it was suspended: a message, and the template that this was made from.
  template_id uuid,
  message_id uuid not null,
  since timestamptz not null,
  until timestamptz not null,
  constraint template_suspensions_pk primary key (app_id, fingerprint)
);

create index template_suspensions_by_template on template_suspensions (app_id, template_id);

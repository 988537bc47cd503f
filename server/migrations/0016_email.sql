-- How an app's mail goes out, in the words of the interface; null where the server's own way is used. The password is among the
-- credentials.
alter table apps add column email_settings jsonb;

-- Domains that an app sends from.
create table email_domains (
  app_id uuid not null,
  -- In lower case, as DNS has it.
  domain text not null,
  state text not null,
  -- What made it active: its records, an operator's word, mail that was only caught, or loaded events. The last two let no mail out.
  activated_by text,
  -- Where bounces go; null is bounce.<domain>.
  return_path_host text,
  -- Where links lead; null is the server's own address.
  tracking_host text,
  -- {selector, algorithm, public, sealed, state, created_at} each; the private half is sealed with SECRET_KEY.
  dkim_keys jsonb not null default '[]',
  -- What was found in DNS, by record.
  checks jsonb not null default '{}',
  checked_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint email_domains_pk primary key (app_id, domain),
  constraint email_domains_state_known check (state in ('pending', 'active', 'paused')),
  constraint email_domains_activated_by_known check (activated_by in ('check', 'force', 'catch', 'load')),
  constraint email_domains_form check (domain = lower(domain) and length(domain) between 1 and 253)
);

-- Addresses that an app sends nothing to.
create table suppressions (
  app_id uuid not null,
  -- In lower case.
  address text not null,
  reason text not null,
  -- What the receiving server or the customer said of it.
  detail text,
  created_at timestamptz not null,
  -- The key that added it; null where the server did.
  created_by uuid,
  constraint suppressions_pk primary key (app_id, address),
  constraint suppressions_reason_known check (
    reason in ('hard_bounce', 'soft_bounces', 'complaint', 'unsubscribed', 'manual', 'imported'))
);

create index suppressions_by_age on suppressions (app_id, created_at, address);

-- When addresses last refused mail for now; enough of it within a month suppresses them.
create table soft_bounces (
  app_id uuid not null,
  address text not null,
  -- The newest, at most as many as it takes; newest first.
  times timestamptz[] not null,
  last_at timestamptz not null,
  constraint soft_bounces_pk primary key (app_id, address)
);

create index soft_bounces_by_age on soft_bounces (app_id, last_at);

-- Mail that was not sent, because nobody has said where to: the development mailbox.
create table caught_mail (
  app_id uuid not null,
  id uuid not null,
  at timestamptz not null,
  from_address text not null,
  to_address text not null,
  subject text not null,
  -- The message that it belongs to; null for what the server itself writes.
  message_id uuid,
  raw bytea not null,
  constraint caught_mail_pk primary key (app_id, id)
);

create index caught_mail_by_age on caught_mail (app_id, at, id);

-- Apps whose email was paused because of complaints, now or before.
create table email_pauses (
  app_id uuid not null,
  -- Null when it was resumed.
  paused_at timestamptz,
  -- What was counted when it was paused.
  detail jsonb not null,
  -- Complaints before this count no more.
  resumed_at timestamptz,
  constraint email_pauses_pk primary key (app_id)
);

-- How a notice goes out: by webhook or by mail. Null for those that are only listed.
alter table notices add column way text;
alter table notices add constraint notices_way_known check (way in ('webhook', 'mail'));

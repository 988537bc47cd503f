-- What the push platforms need to know of an app, by the names of the interface. Read, changed and written as one value under
-- the lock of the row, so that an app is never half configured.
alter table apps add column push_settings jsonb not null default '{}';
-- Credentials by name, each sealed with SECRET_KEY and bound to its app and name.
alter table apps add column credentials jsonb not null default '{}';
-- The pair for web push is made by the server; the private half is among the credentials.
alter table apps add column vapid_public_key text;
alter table apps add constraint apps_vapid_pair check ((vapid_public_key is not null) = (credentials ? 'vapid'));

-- "disabled" keeps the list and does not look at it. An empty list lets everybody in, whatever this says.
alter table api_keys add column ip_allowlist_mode text not null default 'explicit';
alter table api_keys add constraint api_keys_mode_known check (ip_allowlist_mode in ('disabled', 'explicit'));

-- Global, small (a reference table when distributed). Apart from the keys, whose rows it would rewrite every minute.
create table api_key_usage (
  key_id uuid not null,
  last_used_at timestamptz not null,
  constraint api_key_usage_pk primary key (key_id),
  constraint api_key_usage_key_fk foreign key (key_id) references api_keys (id)
);

-- Whose log an entry belongs to. What concerns no app is kept under the app of the system, which many organizations share.
alter table audit_log add column organization_id uuid;
alter table audit_log add column actor_ip text;

update audit_log l set organization_id = a.organization_id from apps a where a.id = l.app_id;
update audit_log l set organization_id = k.organization_id from api_keys k
where l.organization_id is null and l.target_type = 'key' and k.id::text = l.target_id;
update audit_log l set organization_id = l.target_id::uuid
where l.organization_id is null and l.target_type = 'organization';

create index audit_log_by_organization on audit_log (organization_id, at, id);

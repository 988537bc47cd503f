-- Global, small tables (reference tables when distributed): organizations, api_keys.
-- Every other table leads with app_id in every key, so that one PostgreSQL and many run the same SQL.

create table organizations (
  id uuid not null,
  name text not null,
  created_at timestamptz not null,
  constraint organizations_pk primary key (id),
  constraint organizations_name_length check (length(name) between 1 and 128)
);

create table apps (
  id uuid not null,
  organization_id uuid not null,
  name text not null,
  plan text not null default 'free',
  -- Limits that differ from the plan's, by limit name: {"users.write": 50}
  limits jsonb not null default '{}',
  -- May SDKs without a key come in?
  keyless_sdk boolean not null default true,
  -- Must they then bring a token signed with the key whose public part this is?
  identity_required boolean not null default false,
  identity_public_key text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint apps_pk primary key (id),
  constraint apps_organization_fk foreign key (organization_id) references organizations (id),
  constraint apps_name_length check (length(name) between 1 and 128),
  constraint apps_plan_known check (plan in ('free', 'paid')),
  constraint apps_identity_key_present check (not identity_required or identity_public_key is not null)
);

create index apps_by_organization on apps (organization_id);

-- Keys are found by the hash of the whole key; the key itself is shown once and kept nowhere.
create table api_keys (
  id uuid not null,
  kind text not null,
  organization_id uuid not null,
  app_id uuid,
  name text not null,
  hash bytea not null,
  permissions text[] not null,
  ip_allowlist text[] not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  revoked_at timestamptz,
  constraint api_keys_pk primary key (id),
  constraint api_keys_hash_unique unique (hash),
  constraint api_keys_organization_fk foreign key (organization_id) references organizations (id),
  constraint api_keys_kind_known check (kind in ('app', 'org')),
  constraint api_keys_app_of_kind check ((kind = 'app') = (app_id is not null)),
  constraint api_keys_hash_length check (octet_length(hash) = 32)
);

create index api_keys_by_app on api_keys (app_id);

create table audit_log (
  app_id uuid not null,
  at timestamptz not null,
  id uuid not null,
  actor_kind text not null,
  actor_id uuid,
  action text not null,
  target_type text not null,
  target_id text not null,
  detail jsonb not null default '{}',
  constraint audit_log_pk primary key (app_id, at, id)
);

import pg from 'pg'

/** SQL expressions over the number `n`. */
export type Seed = { tags?: string; type?: string; token?: string }

/** Of a device: 32 bytes in hex. */
export const IOS: Seed = { type: 'iOSPush', token: "encode(sha256(convert_to('seed-' || n, 'UTF8')), 'hex')" }

/** Users with one alias and one subscription each, by one statement per table; numbers from `from` up to `to`. */
export async function seedUsers(
  connection: pg.ClientConfig,
  appId: string,
  from: number,
  to: number,
  { tags = `'{"plan":"free"}'::jsonb`, type = 'Email', token = "'seed-' || n || '@example.com'" }: Seed = {},
) {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    for (let start = from; start < to; start += 100_000) {
      const numbers = [appId, start, Math.min(start + 100_000, to) - 1]
      await client.query('begin')
      await client.query('create temp table seed (n integer, user_id uuid) on commit drop')
      await client.query(
        'insert into seed select n, gen_random_uuid() from generate_series($1::integer, $2::integer) n',
        numbers.slice(1),
      )
      await client.query(
        `insert into users (app_id, id, tags, first_active, subscription_count, created_at, updated_at)
         select $1, user_id, ${tags}, now(), 1, now(), now() from seed`,
        [appId],
      )
      await client.query(
        "insert into aliases (app_id, label, value, user_id) select $1, 'external_id', 'seed-' || n, user_id from seed",
        [appId],
      )
      await client.query(
        `insert into subscriptions (app_id, id, user_id, type, type_spelling, token, token_hash, created_at, updated_at)
         select $1, gen_random_uuid(), user_id, $2, $2, t.token, sha256(convert_to(t.token, 'UTF8')), now(), now()
         from seed cross join lateral (select ${token} as token) t`,
        [appId, type],
      )
      await client.query(
        `insert into player_counts (app_id, slot, players, subscribed) select $1, 0, count(*), count(*) from seed
         on conflict (app_id, slot) do update
         set players = player_counts.players + excluded.players, subscribed = player_counts.subscribed + excluded.subscribed`,
        [appId],
      )
      await client.query('commit')
    }
    await client.query('vacuum analyze users, aliases, subscriptions')
  } finally {
    await client.end()
  }
}

/** No dead rows, fresh statistics, nothing left to write. */
export async function settle(connection: pg.ClientConfig) {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    await client.query('vacuum analyze')
    await client.query('checkpoint')
  } finally {
    await client.end()
  }
}

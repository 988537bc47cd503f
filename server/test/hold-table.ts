import pg from 'pg'

/** Whoever reads or writes the table waits until it is released. */
export async function holdTable(connection: pg.ClientConfig, table: string): Promise<{ release(): Promise<void> }> {
  const client = new pg.Client(connection)
  await client.connect()
  await client.query(`begin; lock table ${table} in access exclusive mode`)
  let isHeld = true
  return {
    async release() {
      if (isHeld) await client.end()
      isHeld = false
    },
  }
}

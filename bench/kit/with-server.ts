import type pg from 'pg'
import { createLog } from '../../server/src/lib/log.ts'
import { connectEmbedded } from '../../server/src/storage/embedded/attach.ts'
import { type Carillon, startCarillon } from './processes.ts'
import { type Seed, seedUsers, settle } from './seed.ts'

/** A server of its own with so many users, and a way to its database. */
export async function withServer<Result>(
  { settings, users, seed }: { settings: Record<string, string>; users: number; seed?: Seed },
  run: (carillon: Carillon, connection: pg.ClientConfig) => Promise<Result>,
): Promise<Result> {
  const carillon = await startCarillon(settings)
  try {
    const database = await connectEmbedded({ dataDir: carillon.dataDir, log: createLog('warn') })
    console.log(`\nseeding ${users} users …`)
    await seedUsers(database.connection, carillon.appId, 0, users, seed)
    await settle(database.connection)
    const result = await run(carillon, database.connection)
    await database.close()
    return result
  } finally {
    await carillon.stop()
  }
}

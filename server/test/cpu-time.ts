/** The processor time of this thread while `run` runs. What else the machine does is not in it. */
export async function cpuTimeMs(run: () => unknown): Promise<number> {
  const start = process.threadCpuUsage()
  await run()
  const { user, system } = process.threadCpuUsage(start)
  return (user + system) / 1_000
}

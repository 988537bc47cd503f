// CPU time of the sending process per mail, against nodemailer's pool with the same content to the same sink in the same run.

import { fork } from 'node:child_process'
import { ask, reply } from '../kit/processes.ts'
import { median, type Row, round } from '../kit/report.ts'
import type { Contender, Measured, Signature } from './sender.ts'

export type ChannelOptions = { rounds: number; mails: number; signed: number }

type Case = { name: string; signature: Signature; mails: number; goal: number | null; hasReference: boolean }

const start = (file: string) => fork(new URL(file, import.meta.url), { stdio: 'inherit' })

export async function measureChannel({ rounds, mails, signed }: ChannelOptions): Promise<Row[]> {
  const cases: Case[] = [
    { name: 'mail, not signed', signature: 'none', mails, goal: 3, hasReference: true },
    { name: 'mail, signed with RSA-2048', signature: 'rsa', mails: signed, goal: 1.8, hasReference: true },
    { name: 'mail, signed with Ed25519', signature: 'ed25519', mails: signed, goal: null, hasReference: false },
  ]
  const sink = start('./sink.ts')
  const { port } = await reply<{ port: number }>(sink)
  const rows: Row[] = []
  for (const { name, signature, mails, goal, hasReference } of cases) {
    const contenders: Contender[] = hasReference ? ['carillon', 'nodemailer'] : ['carillon']
    const sides = await Promise.all(
      contenders.map(async (contender) => {
        const child = start('./sender.ts')
        await ask(child, { contender, signature, port })
        return { child, measured: [] as Measured[] }
      }),
    )
    const before = (await ask<{ taken: number }>(sink, {})).taken
    for (let n = 0; n < rounds; n++)
      for (const { child, measured } of sides) measured.push(await ask<Measured>(child, { mails: mails / rounds }))
    const { taken } = await ask<{ taken: number }>(sink, {})
    if (taken - before < sides.length * mails)
      throw new Error(`${taken - before} of ${sides.length * mails} mails arrived`)
    for (const { child } of sides) child.kill()
    const of = (side: number, figure: keyof Measured) => {
      const measured = sides[side]?.measured.map((it) => it[figure])
      return measured ? median(measured) : null
    }
    const [cpu, referenceCpu] = [of(0, 'cpuMicroseconds') ?? 0, of(1, 'cpuMicroseconds')]
    rows.push({
      name,
      ratio: referenceCpu === null ? null : round(referenceCpu / cpu),
      goal,
      cpuMicroseconds: round(cpu, 0),
      referenceCpuMicroseconds: referenceCpu === null ? null : round(referenceCpu, 0),
      perSecond: round(of(0, 'perSecond') ?? 0, 0),
      referencePerSecond: referenceCpu === null ? null : round(of(1, 'perSecond') ?? 0, 0),
    })
  }
  sink.kill()
  return rows
}

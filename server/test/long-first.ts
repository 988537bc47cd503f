// Tests that wait for processes, leases and time limits come first: at the end, one of them alone would keep the other workers idle for minutes.

import { BaseSequencer, type TestSpecification } from 'vitest/node'

const LONG = [
  'chaos/kill-senders',
  'chaos/provider-faults',
  'chaos/hostile-app',
  'chaos/kill-',
  'process/st',
  'process/refuse',
  'chaos/',
  'fuzz/',
  'browsers/',
  'mail/',
  'channels/contract',
  'authorization',
]

const rankOf = ({ moduleId }: TestSpecification) => {
  const place = LONG.findIndex((part) => moduleId.includes(`/server/test/${part}`))
  return place < 0 ? LONG.length : place
}

export default class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.sort((a, b) => rankOf(a) - rankOf(b))
  }
}

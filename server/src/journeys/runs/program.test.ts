import { describe, expect, test } from 'vitest'
import { allNodes, branchesOf, type JourneyNode } from '../nodes/kinds.ts'
import { compileProgram, END, type Program } from './program.ts'

let made = 0
const wait = (): JourneyNode => ({ id: `wait ${++made}`, kind: 'wait', duration_seconds: 60 })
const split = (...lists: JourneyNode[][]): JourneyNode => ({
  id: `split ${++made}`,
  kind: 'split_range',
  randomize_on_entry: false,
  branches: lists.map((nodes) => ({ id: `branch ${++made}`, weight: 50, nodes })),
})

/** A small generator of numbers, so that what fails can be run again. */
function numbers(seed: number) {
  let state = seed
  return (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

function aTree(random: (below: number) => number, depth: number): JourneyNode[] {
  return Array.from({ length: random(4) }, () =>
    depth > 0 && random(3) === 0
      ? split(...Array.from({ length: 1 + random(3) }, () => aTree(random, depth - 1)))
      : wait(),
  )
}

/** The way of a user through the tree as the rules say it: siblings in order, and on behind the branching node. */
function* walkTree(nodes: readonly JourneyNode[], choose: (node: JourneyNode) => number): Generator<string> {
  for (const node of nodes) {
    yield node.id
    const branches = branchesOf(node)
    const chosen = branches.length > 0 ? choose(node) : -1
    // Nobody takes a branch when a wait runs out.
    if (chosen >= 0) yield* walkTree(branches[chosen]?.nodes ?? [], choose)
  }
}

function* walkProgram({ steps, start }: Program, choose: (node: JourneyNode) => number): Generator<string> {
  for (let at = start; at !== END; ) {
    const step = steps[at]
    if (!step) throw new Error(`there is no step ${at}`)
    yield step.node.id
    const chosen = step.branches.length > 0 ? choose(step.node) : -1
    at = step.branches[chosen]?.next ?? step.next
  }
}

describe('a program', () => {
  test('of nothing ends where it begins', () => {
    expect(compileProgram([])).toEqual({ steps: [], start: END, stepOf: new Map() })
  })

  test('runs linear nodes in order', () => {
    const nodes = [wait(), wait(), wait()]
    const { steps, start } = compileProgram(nodes)
    expect({ start, next: steps.map(({ next }) => next) }).toEqual({ start: 0, next: [1, 2, END] })
  })

  test('after a branching node resolves, flow continues at the next sibling of the parent list', () => {
    const [inA, last] = [wait(), wait()]
    const inner = split([wait()], [])
    const outer = split([inA, inner], [])
    const { steps, stepOf } = compileProgram([outer, last])
    const after = stepOf.get(last.id)
    const at = (node: JourneyNode) => steps[stepOf.get(node.id) as number]
    expect(at(outer)?.branches.map(({ next }) => next)).toEqual([stepOf.get(inA.id), after])
    expect(at(inner)?.next).toBe(after)
    expect(at(inner)?.branches.map(({ next }) => next)).toEqual([(stepOf.get(inner.id) as number) + 1, after])
    expect(at(last)?.next).toBe(END)
  })

  test('leads every user the way that the tree does, and only forward', () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = numbers(seed)
      const nodes = aTree(random, 4)
      const program = compileProgram(nodes)
      expect(program.steps.map(({ node }) => node.id)).toEqual(allNodes(nodes).map(({ id }) => id))
      for (const [n, step] of program.steps.entries())
        for (const next of [step.next, ...step.branches.map(({ next }) => next)])
          if (next !== END && next <= n) expect.fail(`seed ${seed}: step ${n} leads back to ${next}`)
      for (let user = 0; user < 5; user++) {
        const chosen = new Map(allNodes(nodes).map((node) => [node.id, random(branchesOf(node).length + 1) - 1]))
        const choose = ({ id }: JourneyNode) => chosen.get(id) as number
        expect([...walkProgram(program, choose)], `seed ${seed}`).toEqual([...walkTree(nodes, choose)])
      }
    }
  })
})

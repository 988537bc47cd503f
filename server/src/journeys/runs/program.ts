// The tree of nodes as a flat list of steps, each with the step after it. A position is the number of a step.

import { branchesOf, type JourneyNode } from '../nodes/kinds.ts'
import type { BranchId, NodeId } from '../nodes/node.ts'

/** The number of the step that comes next; END when the journey is over. */
export type Next = number
export const END: Next = -1

export type Step = {
  node: JourneyNode
  /** The step after the node; for nodes with branches, where users continue whom no branch took. */
  next: Next
  /** Where each branch leads. An empty branch leads to the step after the node. */
  branches: { id: BranchId; next: Next }[]
}

export type Program = {
  steps: Step[]
  /** Where users begin. */
  start: Next
  /** The step of a node. */
  stepOf: ReadonlyMap<NodeId, number>
}

/** Steps are in the order of the tree, each before the nodes nested in it: all steps that can follow have higher numbers. */
export function compileProgram(nodes: readonly JourneyNode[]): Program {
  const steps: Step[] = []
  const start = place(steps, nodes, END)
  return { steps, start, stepOf: new Map(steps.map(({ node }, n) => [node.id, n])) }
}

/** The first step of a list of nodes that leads to `after`. */
function place(steps: Step[], nodes: readonly JourneyNode[], after: Next): Next {
  if (nodes.length === 0) return after
  const first = steps.length
  for (const [n, node] of nodes.entries()) {
    const step: Step = { node, next: after, branches: [] }
    const number = steps.push(step) - 1
    const isLast = n === nodes.length - 1
    step.next = isLast ? after : number + sizeOf(node)
    step.branches = branchesOf(node).map(({ id, nodes }) => ({ id, next: place(steps, nodes, step.next) }))
  }
  return first
}

/** The number of steps of a node and all nodes nested in it. */
const sizeOf = (node: JourneyNode): number =>
  1 + branchesOf(node).reduce((sum, { nodes }) => sum + nodes.reduce((sum, inner) => sum + sizeOf(inner), 0), 0)

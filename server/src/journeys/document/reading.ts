// What is needed while a journey is read, and what comes of it beside the journey.

import type { TemplateSources } from '../../templates/render/source.ts'
import type { JourneyBranch, JourneyNode, NodeOf } from '../nodes/node.ts'
import { createReader, type Reader } from './reader.ts'

export type ReferenceKind = 'segment' | 'template' | 'webhook' | 'iam'

/** Something that the journey refers to, and where. A template must be of the channel. */
export type Reference = { kind: ReferenceKind; id: string; path: string; channel?: 'push' | 'email' | 'sms' }

type ByAction = Extract<NodeOf<'wait_until'>['branches'][number]['condition'], { kind: 'on_notification_action' }>

export type DocumentReading = {
  reader: Reader
  minWaitSeconds: number
  /** Events can be compared with the one that a user entered by. */
  isEventJourney: boolean
  uses: Reference[]
  /** All that may hold Liquid, by its path. */
  texts: TemplateSources
  /** Nodes and branches as they were met, which get their ids when all are known. */
  nodes: { path: string; node: JourneyNode; givenId: string | undefined }[]
  branches: { path: string; node: JourneyNode; branch: JourneyBranch; givenId: string | undefined }[]
  /** Conditions on what became of a message, and the node that they say sends it. */
  senders: { path: string; condition: ByAction; nodeId: string | undefined; clientNodeId: string | undefined }[]
}

export const createDocumentReading = (minWaitSeconds: number, isEventJourney: boolean): DocumentReading => ({
  reader: createReader(),
  minWaitSeconds,
  isEventJourney,
  uses: [],
  texts: {},
  nodes: [],
  branches: [],
  senders: [],
})

// What is collected while a journey is read, beside the journey itself.

import type { TemplateSources } from '../../templates/render/source.ts'
import type { BaseNode, MessageCondition, NodeBranch, TemplateChannel } from '../nodes/node.ts'
import { createReader, type Reader } from './reader.ts'

export type ReferenceKind = 'segment' | 'template' | 'webhook' | 'iam'

/** Something that the journey refers to, and the path where it does. A template must be of the channel. */
export type Reference = { kind: ReferenceKind; id: string; path: string; channel?: TemplateChannel }

export type DocumentReading = {
  reader: Reader
  minWaitSeconds: number
  /** Events can be compared with the one that a user entered by. */
  isEventJourney: boolean
  references: Reference[]
  /** Texts that may hold Liquid, by their paths. */
  liquidTexts: TemplateSources
  /** Nodes and branches in the order of the document. They get their ids when all are known. */
  nodes: { path: string; node: BaseNode & { kind: string }; givenId: string | undefined }[]
  branches: { path: string; node: BaseNode; branch: NodeBranch<unknown>; givenId: string | undefined }[]
  /** Conditions on messages, and which node they say sends the message. */
  messageConditions: {
    path: string
    condition: MessageCondition
    nodeId: string | undefined
    clientNodeId: string | undefined
  }[]
}

export const createDocumentReading = (minWaitSeconds: number, isEventJourney: boolean): DocumentReading => ({
  reader: createReader(),
  minWaitSeconds,
  isEventJourney,
  references: [],
  liquidTexts: {},
  nodes: [],
  branches: [],
  messageConditions: [],
})

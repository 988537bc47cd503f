// The only classifier of bounces: for SMTP replies, bounce reports, and webhooks of email services.

import { ownProperty } from '../../lib/own-property.ts'

/**
 * `hard`: there is no such mailbox. `full`: the mailbox exists and is full. `block`: we or our content are rejected.
 * `soft`: any other refusal that says nothing against the address. `transient`: not refused yet, may be retried.
 */
export type BounceClass = 'hard' | 'soft' | 'full' | 'block' | 'transient'

/** The reasons of outcomes for email that a server refused permanently. */
export const bounceReasons = {
  hard: 'hard_bounce',
  soft: 'soft_bounce',
  full: 'mailbox_full',
  block: 'blocked',
} as const

const reasons: readonly string[] = Object.values(bounceReasons)
export const isBounce = (reason: string) => reasons.includes(reason)

export type BounceInput = { code?: number; enhanced?: string; text?: string }

/**
 * Enhanced codes (RFC 3463, RFC 7504, IANA's registry) that decide the class by themselves. The keys are subject and
 * detail.
 */
const BY_CODE: Record<string, BounceClass> = {
  '1.1': 'hard',
  '1.2': 'hard',
  '1.3': 'hard',
  '1.4': 'hard',
  '1.6': 'hard',
  '1.7': 'block',
  '1.8': 'block',
  '1.10': 'hard',
  '2.1': 'hard',
  '2.2': 'full',
  '2.3': 'soft',
  '2.4': 'soft',
  '3.1': 'soft',
  '3.2': 'soft',
  '3.3': 'soft',
  '3.4': 'soft',
  '4.4': 'hard',
  '4.6': 'soft',
  '4.7': 'soft',
  '4.310': 'hard',
  '7.13': 'hard',
  '7.17': 'hard',
  '7.18': 'hard',
}

const FULL =
  /(?:mailbox|inbox|account|user|recipient|quota)[^.]{0,40}\b(?:full|exceeded|over(?:\s?-?quota| its quota)?)\b|\bover\s?-?(?:the )?quota|quota (?:exceeded|violation)|exceed(?:s|ed)? (?:the |its |storage |mailbox )*(?:quota|allocation|storage)|insufficient (?:system )?storage|not enough (?:storage )?space|out of storage/i

const HARD =
  /user (?:is )?unknown|unknown (?:user|recipient|local[- ]part|address|mailbox|account)|(?:recipient|address|mailbox|account|user)[^.]{0,60}\b(?:unknown|not found|does not exist|doesn'?t exist|do not exist|no longer (?:exists|available|valid|in use)|is (?:disabled|inactive|deactivated|suspended|invalid|not valid|closed|unavailable)|unavailable|disabled|discontinued|not available)|no such (?:user|recipient|mailbox|account|address|person|domain|local user)|(?:invalid|bad|non-?existent|undeliverable|unrouteable|unroutable|incorrect) (?:recipient|mailbox|address|user|account|destination)|not a (?:valid|known) (?:mailbox|user|recipient|address)|no mailbox (?:here )?(?:by|with) that name|mailbox (?:not found|unavailable)|(?:user|recipient) not (?:found|known|exist)|not our customer|doesn'?t have an? [\w.]+ account|account (?:that you tried to reach )?(?:does not exist|is disabled)|no one (?:here )?(?:by|with) that name|(?:domain|host)(?: or domain)? (?:name )?(?:not found|does not exist)|relay access denied|recipient address rejected: access denied|dd requested mail action aborted, mailbox not found|null mx/i

const BLOCK =
  /spam|blocked|block ?list|black ?list|deny ?list|listed (?:by|in|at|on)|\b(?:dns)?[rd]bl\b|spamhaus|spamcop|barracuda|proofpoint|mimecast|cloudmark|reputation|\bpolicy|policies|dmarc|\bspf\b|dkim|unauthenticated|not authenticated|authentication (?:is )?required|banned|suspicious|phish|malware|virus|unsolicited|bulk (?:mail|email)|abuse|not (?:permitted|allowed|accepted|authori[sz]ed) (?:from|to send|because|due|by)|sender (?:rejected|denied|not|verify)|rejected (?:due|because|for policy|by)|message (?:content )?rejected|content (?:rejected|filter)|(?:ptr|reverse dns|rdns)|access denied|client host|too many (?:messages|connections|recipients)|rate[- ]?limit|throttl|\bJunkMail|high probability|complaints?/i

/**
 * The enhanced code is considered first, and the text if the code is missing or inconclusive. A refusal that neither
 * explains is not held against the address.
 */
export function classifyBounce(given: BounceInput): BounceClass {
  const { code, enhanced, text } = read(given)
  const [kind, subject, detail] = enhanced?.split('.') ?? []
  const isLater = kind === undefined ? code !== undefined && code < 500 : kind === '4'
  const known = ownProperty(BY_CODE, `${subject}.${detail}`)
  if (isLater) {
    if (known === 'full' || (enhanced === undefined && FULL.test(text))) return 'full'
    // With 4.4.7, another server has retried for as long as it is willing to; the other temporary codes may be retried.
    return `${subject}.${detail}` === '4.7' ? 'soft' : 'transient'
  }
  if (known) return known
  if (subject === '7') return 'block'
  if (FULL.test(text)) return 'full'
  const isHard = HARD.exec(text)
  const isBlock = BLOCK.exec(text)
  // If both patterns match, the one that comes first in the text is what the refusal is about.
  if (isHard && (!isBlock || isHard.index <= isBlock.index)) return 'hard'
  if (isBlock) return 'block'
  return subject === '1' ? 'hard' : 'soft'
}

/** Email services often put the codes and the text into one string. */
function read({ code, enhanced, text = '' }: BounceInput): { code?: number; enhanced?: string; text: string } {
  const [, saidCode] = /^\s*(?:smtp;\s*)?([245]\d\d)(?=[\s-]|$)/i.exec(text) ?? []
  const [, said] = /(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.]*\d)/.exec(text) ?? []
  const [, valid] = /^\s*([245]\.\d{1,3}\.\d{1,3})\s*$/.exec(enhanced ?? '') ?? []
  const codeFound = code ?? (saidCode === undefined ? undefined : Number(saidCode))
  const enhancedFound = valid ?? said
  return {
    text,
    ...(codeFound !== undefined && { code: codeFound }),
    ...(enhancedFound !== undefined && { enhanced: enhancedFound }),
  }
}

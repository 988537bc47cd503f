// Finds the sender of an email, and the domain that signs for it.

import { domainToASCII } from 'node:url'
import type { SendingDomain } from '../../email/domains/find-sending-domain.ts'
import type { AppId } from '../../lib/ids.ts'
import type { ContentFields } from '../../templates/content.ts'
import { DOMAIN_INACTIVE, NO_FROM_ADDRESS } from '../reasons.ts'
import type { EmailPort } from './port.ts'

export type SenderAddress = { name?: string; address: string }
export type SenderIdentity = { from: SenderAddress; domain: SendingDomain }

/** Why there is no sender. */
export type NoSenderIdentity = typeof NO_FROM_ADDRESS | typeof DOMAIN_INACTIVE

/** The domain of email that is caught: it is never sent, so it needs no domain that somebody has set up. */
const NOWHERE = 'localhost.localdomain'

type Said = Pick<ContentFields, 'email_from_name' | 'email_from_address' | 'email_sender_domain'>

export async function findSenderIdentity(
  email: EmailPort,
  appId: AppId,
  content: Said,
): Promise<SenderIdentity | NoSenderIdentity> {
  const from = await findFrom(email, appId, content)
  if (!from) return NO_FROM_ADDRESS
  const ofAddress = domainOf(from.address)
  const findOwn = () => findActive(email, appId, withThoseAbove(ofAddress))
  if (!content.email_sender_domain) {
    const domain = await findOwn()
    return domain ? { from, domain } : DOMAIN_INACTIVE
  }
  const named = plainDomain(content.email_sender_domain)
  const domain = await findActive(email, appId, [named])
  if (!domain) return DOMAIN_INACTIVE
  // Permission to send from one domain must not allow sending in the name of another.
  return isSameHouse(ofAddress, named) || (await findOwn()) ? { from, domain } : DOMAIN_INACTIVE
}

async function findActive(email: EmailPort, appId: AppId, names: readonly string[]) {
  for (const name of names) {
    const domain = await email.findSendingDomain(appId, name)
    if (domain) return domain
  }
  return undefined
}

/** True if one domain equals the other or is below it: mg.example.com often signs for example.com. */
const isSameHouse = (a: string, b: string) => a.includes('.') && (a === b || a.endsWith(`.${b}`) || b.endsWith(`.${a}`))

async function findFrom(email: EmailPort, appId: AppId, content: Said): Promise<SenderAddress | undefined> {
  const name = content.email_from_name || undefined
  if (content.email_from_address) return { ...(name && { name }), address: content.email_from_address }
  const usual = await email.defaultFrom(appId)
  if (usual) return name ? { ...usual, name } : usual
  const caught = await email.findDevelopmentMailbox(appId)
  if (!caught) return undefined
  return { name: name ?? caught.appName, address: `no-reply@${content.email_sender_domain || NOWHERE}` }
}

/** Email of news.example.com may be signed by example.com. */
function withThoseAbove(domain: string): string[] {
  const labels = domain.split('.')
  const count = Math.max(1, labels.length - 1)
  return Array.from({ length: count }, (_, i) => labels.slice(i).join('.'))
}

const domainOf = (address: string) => plainDomain(address.slice(address.lastIndexOf('@') + 1))
const plainDomain = (domain: string) => domainToASCII(domain) || domain.toLowerCase()

import type { Route, RouteAccess, RouteLimit } from '../../http/route.ts'
import { route } from '../../http/route.ts'
import type { EmailContext } from '../context.ts'
import { addDomain, removeDomain, rotateKeys, setDomainState } from './change.ts'
import {
  AppPath,
  DomainAnswer,
  DomainPath,
  DomainStateBody,
  DomainsAnswer,
  DoneAnswer,
  NewDomainBody,
  RotateBody,
} from './schema.ts'
import { verifyDomain } from './verify.ts'
import { viewDomain, viewDomains } from './view.ts'

const views: RouteAccess = { kind: 'app', permission: 'messages', appIn: 'path', orOrganization: true }
const changes: RouteAccess = { kind: 'app', permission: 'apps', appIn: 'path', orOrganization: true }
const reads: RouteLimit[] = [{ rule: 'read' }]
const writes: RouteLimit[] = [{ rule: 'write' }]
const makesKeys: RouteLimit[] = [{ rule: 'email.keys' }]

export function domainRoutes(ctx: EmailContext): Route[] {
  const all = { errors: 'apps' as const, tag: 'Email', path: '/apps/:app_id/email/domains', params: AppPath }
  const one = { ...all, path: `${all.path}/:domain`, params: DomainPath, answers: { 200: DomainAnswer } }
  const nameIn = ({ params }: { params: { domain: string } }) => params.domain.toLowerCase()
  return [
    route({
      ...all,
      operation: 'listEmailDomains',
      method: 'GET',
      summary: 'View sending domains',
      access: views,
      limits: reads,
      answers: { 200: DomainsAnswer },
      async handle({ app }) {
        return { status: 200, body: { domains: await viewDomains(ctx, app.id) } }
      },
    }),
    route({
      ...all,
      operation: 'addEmailDomain',
      method: 'POST',
      summary: 'Add a sending domain',
      description:
        'Makes its keys for DKIM, and answers the records that have to be in DNS. Mail goes out from it when they were seen there. An app has at most 100.',
      access: changes,
      limits: makesKeys,
      body: NewDomainBody,
      answers: { 201: DomainAnswer },
      async handle(call) {
        const { domain } = await addDomain(ctx, call.app.id, call.body, call)
        return { status: 201, body: await viewDomain(ctx, call.app.id, domain) }
      },
    }),
    route({
      ...one,
      operation: 'viewEmailDomain',
      method: 'GET',
      summary: 'View a sending domain',
      access: views,
      limits: reads,
      async handle(call) {
        return { status: 200, body: await viewDomain(ctx, call.app.id, nameIn(call)) }
      },
    }),
    route({
      ...one,
      operation: 'updateEmailDomain',
      method: 'PUT',
      summary: 'Pause a sending domain, or let it go on',
      description:
        '`active` asks DNS now, and is refused while a required record is not there. `force` (organization keys) is for private DNS, and for a relay that signs by itself.',
      access: changes,
      limits: writes,
      body: DomainStateBody,
      async handle(call) {
        const { state, force } = call.body
        await setDomainState(ctx, call.app.id, nameIn(call), { state, force: force ?? false }, call)
        return { status: 200, body: await viewDomain(ctx, call.app.id, nameIn(call)) }
      },
    }),
    route({
      ...one,
      operation: 'verifyEmailDomain',
      method: 'POST',
      path: `${one.path}/verify`,
      summary: 'Check the records of a sending domain now',
      description: 'A pending domain becomes active when all required records are there.',
      access: changes,
      limits: writes,
      async handle(call) {
        await verifyDomain(ctx, call.app.id, nameIn(call), call)
        return { status: 200, body: await viewDomain(ctx, call.app.id, nameIn(call)) }
      },
    }),
    route({
      ...one,
      operation: 'rotateEmailDomainKeys',
      method: 'POST',
      path: `${one.path}/rotate`,
      summary: 'Give a sending domain new DKIM keys',
      description:
        'The first call makes the next keys: publish their records. The second one, once DNS shows them, lets them sign, and throws the private halves of the old ones away; leave the old records for a week.',
      access: changes,
      limits: makesKeys,
      body: RotateBody,
      mayOmitBody: true,
      async handle(call) {
        await rotateKeys(ctx, call.app.id, nameIn(call), call.body.force === true, call)
        return { status: 200, body: await viewDomain(ctx, call.app.id, nameIn(call)) }
      },
    }),
    route({
      ...one,
      operation: 'removeEmailDomain',
      method: 'DELETE',
      summary: 'Remove a sending domain',
      description: 'Its keys are lost: added again, it gets new ones.',
      access: changes,
      limits: writes,
      answers: { 200: DoneAnswer },
      async handle(call) {
        await removeDomain(ctx, call.app.id, nameIn(call), call)
        return { status: 200, body: { success: true } }
      },
    }),
  ]
}

import type { Route } from '../../http/route.ts'
import { route } from '../../http/route.ts'
import type { AppsContext } from '../context.ts'
import { listAuditLog, organizationNotFound } from './list.ts'
import { AuditAnswer, AuditQuery, OrganizationPath } from './schema.ts'

export const auditRoutes = (ctx: AppsContext): Route[] => [
  route({
    errors: 'apps',
    tag: 'Audit log',
    access: { kind: 'organization' },
    operation: 'listAuditLogs',
    method: 'GET',
    path: '/organizations/:organization_id/audit_logs',
    summary: 'View audit logs',
    description: 'Every change to apps, keys and what they hold that is worth a trace, oldest first.',
    limits: [],
    params: OrganizationPath,
    query: AuditQuery,
    answers: { 200: AuditAnswer },
    async handle({ caller, params, query }) {
      // The organization of another key gets the same answer as one that does not exist.
      if (caller.kind !== 'organization' || caller.organizationId !== params.organization_id)
        throw organizationNotFound()
      return { status: 200, body: await listAuditLog(ctx, caller.organizationId, query) }
    },
  }),
]

import type { Call, Route, RouteAccess, RouteLimit } from '../http/route.ts'
import { route } from '../http/route.ts'
import { changeTemplate, copyTemplate, createTemplate, removeTemplate } from './change.ts'
import type { TemplatesContext } from './context.ts'
import { namesUser, previewTemplate, previewUnsaved } from './preview.ts'
import {
  AppQuery,
  CopyTemplateBody,
  CreateTemplateBody,
  DeletedAnswer,
  PreviewAnswer,
  PreviewBody,
  PreviewUnsavedBody,
  TemplateAnswer,
  TemplatePath,
  TemplatesAnswer,
  TemplatesQuery,
  UpdateTemplateBody,
} from './schema.ts'
import { findTemplate, listTemplates } from './store.ts'
import { findSuspensionOf, resumeTemplate } from './suspension.ts'
import { summaryObject, templateNotFound, templateObject } from './template.ts'

const access = (appIn: 'query' | 'body'): RouteAccess => ({ kind: 'app', permission: 'templates', appIn })
/** A preview with Liquid can reveal everything that is known about the user. */
const previewAccess = (appIn: 'query' | 'body'): RouteAccess => ({
  kind: 'app',
  permission: 'templates',
  also: { permission: 'users', when: { reason: 'a preview as a user', applies: ({ body }) => namesUser(body) } },
  appIn,
})
const isLookback = ({ query }: Pick<Call, 'query'>) => Number(query.offset) > 0
const writes: RouteLimit[] = [{ rule: 'write' }]

export function templateRoutes(ctx: TemplatesContext): Route[] {
  const common = { errors: 'templates' as const, tag: 'Templates' }
  return [
    route({
      ...common,
      operation: 'listTemplates',
      method: 'GET',
      path: '/templates',
      summary: 'View templates',
      description:
        'Summaries, oldest first. Ask with `offset` increased by `limit` until all are read; a template made meanwhile comes last.',
      access: access('query'),
      limits: [
        { rule: 'view', when: (call) => !isLookback(call) },
        { rule: 'lookback', counter: 'lookback', when: isLookback },
      ],
      query: TemplatesQuery,
      answers: { 200: TemplatesAnswer },
      async handle({ app, query: { limit, offset, channel } }) {
        const { total, templates } = await listTemplates(ctx.db, app.id, { limit, offset, channel })
        return { status: 200, body: { limit, offset, templates: templates.map(summaryObject), total_count: total } }
      },
    }),
    route({
      ...common,
      operation: 'createTemplate',
      method: 'POST',
      path: '/templates',
      summary: 'Create template',
      description:
        '`isEmail` makes it an email, `isSMS` a text message; otherwise it is a push message. Liquid is checked, and errors are reported with line and column.',
      access: access('body'),
      limits: writes,
      body: CreateTemplateBody,
      answers: { 200: TemplateAnswer },
      async handle(call) {
        return { status: 200, body: templateObject(await createTemplate(ctx, call.app.id, call.body, call)) }
      },
    }),
    route({
      ...common,
      operation: 'viewTemplate',
      method: 'GET',
      path: '/templates/:template_id',
      summary: 'View template',
      access: access('query'),
      limits: [{ rule: 'view' }],
      params: TemplatePath,
      query: AppQuery,
      answers: { 200: TemplateAnswer },
      async handle({ app, params }) {
        const template = await findTemplate(ctx.db, app.id, params.template_id)
        if (!template) throw templateNotFound()
        return { status: 200, body: templateObject(template, await findSuspensionOf(ctx, app.id, template)) }
      },
    }),
    route({
      ...common,
      operation: 'updateTemplate',
      method: 'PATCH',
      path: '/templates/:template_id',
      summary: 'Update template',
      description: 'Fields that are given replace what is there, null takes one away, the others stay.',
      access: access('query'),
      limits: writes,
      params: TemplatePath,
      query: AppQuery,
      body: UpdateTemplateBody,
      answers: { 200: TemplateAnswer },
      async handle(call) {
        const { app, params, body } = call
        const template = await changeTemplate(ctx, app.id, params.template_id, body, call)
        return { status: 200, body: templateObject(template, await findSuspensionOf(ctx, app.id, template)) }
      },
    }),
    route({
      ...common,
      operation: 'deleteTemplate',
      method: 'DELETE',
      path: '/templates/:template_id',
      summary: 'Delete template',
      description: 'Not while an active journey uses it: 400.',
      access: access('query'),
      limits: writes,
      params: TemplatePath,
      query: AppQuery,
      answers: { 200: DeletedAnswer },
      async handle(call) {
        await removeTemplate(ctx, call.app.id, call.params.template_id, call)
        return { status: 200, body: { success: true } }
      },
    }),
    route({
      ...common,
      operation: 'resumeTemplate',
      method: 'POST',
      path: '/templates/:template_id/resume',
      summary: 'Resume template',
      description:
        'Ends the suspension of a template that kept hitting its rendering time limit. Editing its content does the same. Answers the template.',
      access: access('query'),
      limits: writes,
      params: TemplatePath,
      query: AppQuery,
      answers: { 200: TemplateAnswer },
      async handle(call) {
        return {
          status: 200,
          body: templateObject(await resumeTemplate(ctx, call.app.id, call.params.template_id, call)),
        }
      },
    }),
    route({
      ...common,
      operation: 'copyTemplateToApp',
      method: 'POST',
      path: '/templates/:template_id/copy_to_app',
      summary: 'Copy template to another app',
      description: 'Both apps must belong to the organization of the key. Answers the copy.',
      access: { kind: 'organization', appIn: 'query' },
      limits: writes,
      params: TemplatePath,
      query: AppQuery,
      body: CopyTemplateBody,
      answers: { 200: TemplateAnswer },
      async handle(call) {
        const { app, params, body } = call
        const target = { appId: body.target_app_id.toLowerCase(), organizationId: app.organizationId }
        const copy = await copyTemplate(ctx, app.id, params.template_id, target, call)
        return { status: 200, body: templateObject(copy) }
      },
    }),
    route({
      ...common,
      operation: 'previewTemplate',
      method: 'POST',
      path: '/templates/:template_id/preview',
      summary: 'Preview template',
      description:
        'The template as one user would get it; without `alias_label` and `alias_id`, as a user without any properties. Nothing is sent.',
      access: previewAccess('query'),
      limits: [{ rule: 'read' }],
      params: TemplatePath,
      query: AppQuery,
      body: PreviewBody,
      answers: { 200: PreviewAnswer },
      async handle({ app, params, body }) {
        return { status: 200, body: await previewTemplate(ctx, app.id, params.template_id, body) }
      },
    }),
    route({
      ...common,
      operation: 'previewUnsavedTemplate',
      method: 'POST',
      path: '/templates/preview',
      summary: 'Preview content that is not saved',
      description:
        'As one user would get it, or without `alias_label` and `alias_id` as a user without any properties.',
      access: previewAccess('body'),
      limits: [{ rule: 'read' }],
      body: PreviewUnsavedBody,
      answers: { 200: PreviewAnswer },
      async handle({ app, body }) {
        return { status: 200, body: await previewUnsaved(ctx, app.id, body) }
      },
    }),
  ]
}

// Makers for tests about templates.

import type { Answer, Request, TestApp } from './app.ts'
import { aName } from './users.ts'

type Fields = Record<string, unknown>

export const aPush = (fields: Fields = {}) => ({ name: aName('template'), contents: { en: 'Hello' }, ...fields })
export const anEmailTemplate = (fields: Fields = {}) => ({
  name: aName('template'),
  isEmail: true,
  email_subject: 'Hello',
  email_body: '<p>Hello</p>',
  ...fields,
})
export const anSms = (fields: Fields = {}) => ({
  name: aName('template'),
  isSMS: true,
  contents: { en: 'Hello' },
  ...fields,
})

export const templatesOf = (app: TestApp) => {
  const appId = app.tenant.id
  return {
    create: (fields: Fields, request: Request = {}): Promise<Answer> =>
      app.request('/templates', { body: { app_id: appId, ...fields }, ...request }),
    list: (query = ''): Promise<Answer> => app.request(`/templates?app_id=${appId}${query}`),
    view: (id: string): Promise<Answer> => app.request(`/templates/${id}?app_id=${appId}`),
    update: (id: string, body: Fields): Promise<Answer> =>
      app.request(`/templates/${id}?app_id=${appId}`, { method: 'PATCH', body }),
    remove: (id: string): Promise<Answer> => app.request(`/templates/${id}?app_id=${appId}`, { method: 'DELETE' }),
    copy: (id: string, target: string, key = app.tenant.organizationKey): Promise<Answer> =>
      app.request(`/templates/${id}/copy_to_app?app_id=${appId}`, {
        body: { target_app_id: target },
        headers: { authorization: `Key ${key}` },
      }),
    preview: (id: string, body: Fields): Promise<Answer> =>
      app.request(`/templates/${id}/preview?app_id=${appId}`, { body }),
    previewUnsaved: (body: Fields): Promise<Answer> =>
      app.request('/templates/preview', { body: { app_id: appId, ...body } }),
  }
}

export const refused = (...errors: unknown[]) => ({ status: 400, body: { errors } })
export const TEMPLATE_NOT_FOUND = { status: 404, body: { errors: ['template not found'] } }

// The wire shapes of templates.

import Type, { type Static } from 'typebox'
import { CONTENT_CHANNELS, contentFields } from './content.ts'

const dynamicContent = Type.Optional(
  Type.Unsafe<string | null>({
    type: ['string', 'null'],
    description:
      'What Liquid knows as `dynamic_content`, as text: a JSON object, or CSV whose first line names the columns and whose first column names the rows (`dynamic_content.row.column`). At most 200,000 bytes.',
  }),
)
const name = Type.String({ minLength: 1, maxLength: 128 })

export const CreateTemplateBody = Type.Object({
  app_id: Type.String(),
  name,
  ...contentFields,
  dynamic_content: dynamicContent,
})
export type CreateTemplateBody = Static<typeof CreateTemplateBody>

export const UpdateTemplateBody = Type.Object({
  name: Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], minLength: 1, maxLength: 128 })),
  ...contentFields,
  dynamic_content: dynamicContent,
})
export type UpdateTemplateBody = Static<typeof UpdateTemplateBody>

const uuid = () => Type.String({ format: 'uuid' })
export const CopyTemplateBody = Type.Object({ target_app_id: uuid() })

const recipient = {
  alias_label: Type.Optional(
    Type.Unsafe<string | null>({
      type: ['string', 'null'],
      description:
        'Such as external_id; with alias_id it names the user to render for, which needs the permission `users` too.',
    }),
  ),
  alias_id: Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'] })),
  language: Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength: 32 })),
  custom_data: Type.Optional(
    Type.Unsafe<Record<string, unknown> | null>({
      type: ['object', 'null'],
      description: '`message.custom_data` in Liquid.',
    }),
  ),
  journey: Type.Optional(
    Type.Unsafe<Record<string, unknown> | null>({ type: ['object', 'null'], description: '`journey` in Liquid.' }),
  ),
}
export const PreviewBody = Type.Object(recipient)
export type PreviewBody = Static<typeof PreviewBody>

export const PreviewUnsavedBody = Type.Object({
  app_id: Type.String(),
  name: Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength: 128 })),
  ...contentFields,
  dynamic_content: dynamicContent,
  ...recipient,
})
export type PreviewUnsavedBody = Static<typeof PreviewUnsavedBody>

export const TemplatePath = Type.Object({ template_id: uuid() })
export const AppQuery = Type.Object({ app_id: Type.String() })
export const TemplatesQuery = Type.Object({
  app_id: Type.String(),
  limit: Type.Integer({ minimum: 1, maximum: 50, default: 50 }),
  offset: Type.Integer({ minimum: 0, maximum: 2_147_483_647, default: 0 }),
  channel: Type.Optional(Type.Unsafe<(typeof CONTENT_CHANNELS)[number]>({ enum: [...CONTENT_CHANNELS] })),
})

const TemplateSummary = Type.Object({
  id: uuid(),
  name: Type.String(),
  created_at: Type.String({ format: 'date-time' }),
  updated_at: Type.String({ format: 'date-time' }),
})
export const TemplatesAnswer = Type.Object({
  limit: Type.Integer(),
  offset: Type.Integer(),
  templates: Type.Array(TemplateSummary),
  total_count: Type.Integer({ description: 'Templates of the app, or of the channel asked for.' }),
})
export const TemplateAnswer = Type.Object({
  ...TemplateSummary.properties,
  channel: Type.Union([Type.Unsafe<(typeof CONTENT_CHANNELS)[number]>({ enum: [...CONTENT_CHANNELS] }), Type.Null()]),
  suspended: Type.Optional(
    Type.Object(
      { since: Type.String({ format: 'date-time' }), until: Type.String({ format: 'date-time' }) },
      {
        description:
          'While the content is suspended because rendering it kept hitting its time limit: messages with it fail with the reason `template_suspended`.',
      },
    ),
  ),
  content: Type.Unsafe<Record<string, unknown>>({
    type: 'object',
    description: 'The content as it was given, with a flag for each platform and channel.',
  }),
})
export const DeletedAnswer = Type.Object({ success: Type.Boolean() })
export const PreviewAnswer = Type.Object({
  channel: Type.Unsafe<(typeof CONTENT_CHANNELS)[number]>({ enum: [...CONTENT_CHANNELS] }),
  language: Type.String({ description: 'The language that was looked for.' }),
  rendered: Type.Unsafe<Record<string, string>>({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Texts by field. Beside `email_body` stands `email_text`, the text part made from it.',
  }),
})

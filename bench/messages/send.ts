export const pushTo = (appId: string, more: object) => ({
  app_id: appId,
  headings: { en: 'The bells ring' },
  contents: { en: 'x'.repeat(200) },
  data: { order: '1234567890', kind: 'benchmark' },
  ...more,
})

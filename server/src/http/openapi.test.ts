import { describe, expect, test } from 'vitest'
import { fakeRoutes } from '../../test/http.ts'
import { describeApi, type Operation } from './openapi.ts'

const api = describeApi(fakeRoutes())
const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
)
const operation = (id: string) => operations.find((one) => one.operation.operationId === id)?.operation as Operation

describe('the description for machines', () => {
  test('names the interface and holds every route', () => {
    expect(api.openapi).toBe('3.1.0')
    expect(api.info).toMatchObject({ title: 'Carillon', version: '11.6' })
    expect(operations.map((one) => one.operation.operationId).sort()).toEqual(
      fakeRoutes()
        .map((route) => route.operation)
        .sort(),
    )
  })

  test('is sound: path parameters are declared, references lead somewhere, each operation answers', () => {
    const references = [...JSON.stringify(api).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(
      (match) => match[1],
    )
    expect(references.length).toBeGreaterThan(0)
    for (const name of references) expect(Object.keys(api.components.schemas)).toContain(name)
    for (const { path, operation } of operations) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path')
      expect(declared.map(({ name, required }) => [name, required])).toEqual(inPath.map((name) => [name, true]))
      expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(['200', '400', '500', '503']))
      for (const scheme of operation.security.flatMap((one) => Object.keys(one)))
        expect(Object.keys(api.components.securitySchemes)).toContain(scheme)
      for (const { content } of Object.values(operation.responses)) expect(content).toBeDefined()
    }
  })

  test('describes a body that its domain reads itself, and what contains itself once, under a name', () => {
    const [first] = fakeRoutes()
    if (!first) throw new Error('there are no routes')
    const list = { type: 'array', items: { $ref: '#/components/schemas/Tree' } }
    const tree = { type: 'object', properties: { children: list } }
    const route = {
      ...first,
      method: 'POST' as const,
      body: { type: 'object' },
      describedBody: { type: 'object', properties: { trees: list } },
      components: { Tree: tree },
    }
    const { paths, components } = describeApi([route])
    const [described] = Object.values(paths).map((methods) => methods.post)
    expect(described?.requestBody?.content['application/json']?.schema).toEqual(route.describedBody)
    expect(components.schemas.Tree).toEqual(tree)
  })

  test('does not depend on the order of the table', () => {
    expect(JSON.stringify(describeApi(fakeRoutes().reverse()).paths)).toBe(JSON.stringify(api.paths))
  })

  test('says who may call, what it uses up and how errors look', () => {
    const create = operation('createUser')
    expect(create.description).toContain('permission `users`')
    expect(create.description).toContain('`fake.write`')
    expect(create.security).toEqual([{ appKey: [] }, { identityToken: [] }, {}])
    expect(create.responses['429']).toMatchObject({
      headers: { 'Retry-After': expect.anything() },
      content: { 'application/json': { schema: { $ref: '#/components/schemas/ErrorObjects' } } },
    })
    expect(operation('cancelMessage').responses['429']?.content).toEqual({
      'application/json': { schema: { $ref: '#/components/schemas/ErrorStrings' } },
    })
    expect(operation('updateApp').security).toEqual([{ organizationKey: [] }])
    expect(operation('addPlayer').requestBody?.content['application/json']?.schema).toMatchObject({
      required: ['app_id', 'device_type'],
    })
    expect(operation('viewUser').parameters).toContainEqual({
      name: 'limit',
      in: 'query',
      required: false,
      schema: { type: 'integer', minimum: 1, maximum: 50, default: 50 },
    })
  })
})

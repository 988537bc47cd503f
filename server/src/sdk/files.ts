// Serves the files of web-sdk/ unchanged: browsers get exactly what is in the repository.

import { readFileSync } from 'node:fs'
import { ownProperty } from '../lib/own-property.ts'

const FOLDER = new URL('../../../web-sdk/', import.meta.url)

const TYPES: Record<string, string> = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  ts: 'application/typescript; charset=utf-8',
}

export type WebFile = { text: string; contentType: string }

export function readWebFile(name: string): WebFile {
  const contentType = ownProperty(TYPES, name.split('.').at(-1) as string)
  if (contentType === undefined) throw new Error(`nobody knows what kind of file ${name} is`)
  return { text: readFileSync(new URL(name, FOLDER), 'utf8'), contentType }
}

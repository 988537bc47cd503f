import { ownProperty } from '../../lib/own-property.ts'

/** The embedded PostgreSQL cannot be started; the message tells the operator why, in one line. */
export class EmbeddedError extends Error {}

/** Another server uses the data folder. */
export class FolderInUse extends EmbeddedError {}

const REASONS: Record<string, string> = {
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  ENOSPC: 'no space left on the disk',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'a part of the path is a file, not a folder',
  EEXIST: 'a file is in the way',
  ENOENT: 'no such file or folder',
  ELOOP: 'the path has a loop of links',
  ENAMETOOLONG: 'the path is too long',
}

/** Describes a system error in words; other errors keep their message. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return (code !== undefined && ownProperty(REASONS, code)) || oneLine(message)
}

const oneLine = (text: string) => text.replace(/\s*\n\s*/g, ' ').trim()

/** Finds the cause in the output of initdb or postgres: the first complaint, because later ones follow from it. */
export function complaintIn(output: string): string | undefined {
  if (/No space left on device|Check free disk space/.test(output)) return REASONS.ENOSPC
  const complaint = /(?:PANIC|FATAL|initdb: error|postgres: error|error while loading[^:]*):\s*(.+)/.exec(output)?.[1]
  return complaint?.trim() ?? (output.trim().split('\n').at(-1) || undefined)
}

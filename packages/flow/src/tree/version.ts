import type { Path } from '../faults/path.ts'
import type { Report } from '../faults/report.ts'
import { wrongType } from './kinds.ts'

/** Versions of the Agent Specification that documents in the wild carry; some were never released. */
const VERSIONS = [
  '25.3.0',
  '25.3.1',
  '25.4.0',
  '25.4.1',
  '25.4.2',
  '26.1.0',
  '26.1.1',
  '26.1.2',
  '26.2.0',
  '26.3.0',
  '26.3.1',
  '26.4.0',
] as const
const NEWEST = VERSIONS[VERSIONS.length - 1] as string

/** `air_version` is the name of the field before the first release. */
export const isVersionField = (name: string): boolean => name === 'agentspec_version' || name === 'air_version'

/** Checks the version at the top of a document. A newer one is read as far as it is understood. */
export function checkVersion(report: Report, root: Readonly<Record<string, unknown>>): string | undefined {
  const name = Object.keys(root).find(isVersionField)
  if (name === undefined || root[name] === null) return undefined
  const version = root[name]
  if (typeof version !== 'string') {
    wrongType(report, [name], 'a version in quotes, such as "26.1.0"', version)
    return undefined
  }
  if ((VERSIONS as readonly string[]).includes(version)) return version
  if (isNewer(version)) {
    report.warn(
      'FLOW_VERSION_NEWER',
      [name],
      `version "${version}" is newer than ${NEWEST}, the last one this release knows.`,
    )
  } else {
    report.fault('FLOW_VERSION_UNKNOWN', [name], `unknown version "${version}"; versions are: ${VERSIONS.join(', ')}.`)
  }
  return version
}

function isNewer(version: string): boolean {
  const parts = /^(\d+)\.(\d+)\.(\d+)$/.exec(version)?.slice(1).map(Number)
  if (parts === undefined) return false
  const newest = NEWEST.split('.').map(Number)
  const i = parts.findIndex((part, at) => part !== newest[at])
  return i !== -1 && (parts[i] as number) > (newest[i] as number)
}

export function versionNested(report: Report, path: Path, name: string): void {
  report.fault('FLOW_VERSION_NESTED', path, `"${name}" belongs to the top of the document only. Move or remove it.`, {
    onKey: true,
  })
}

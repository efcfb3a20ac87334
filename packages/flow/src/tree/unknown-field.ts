import type { Descriptor } from '../components/descriptor.ts'
import type { Path } from '../faults/path.ts'
import type { Report } from '../faults/report.ts'
import { type Definition, titleOf } from './definition.ts'
import { nearest } from './nearest.ts'
import { REFERENCED } from './placed.ts'
import { isVersionField, versionNested } from './version.ts'

/** Fields with which a document would say who watches over it. That is never its own choice. */
const OF_THE_OPERATOR = new Set(['middleware', 'policies', 'tool_policy'])

/**
 * A field that the type does not have. An odd one is only a warning, so that documents of later releases and of other
 * runtimes load; one that is a slip of a known field is a fault, since what was meant is lost.
 */
export function checkUnknownField(report: Report, owner: Definition, descriptor: Descriptor, name: string): void {
  if (name === 'component_type' || name === REFERENCED) return
  const path = [...owner.path, name]
  if (isVersionField(name)) {
    if (owner.path.length > 0) versionNested(report, path, name)
    return
  }
  if (OF_THE_OPERATOR.has(name)) {
    installed(report, path, name)
    return
  }
  const absent = [...descriptor.fields.keys()].filter((field) => !Object.hasOwn(owner.value, field))
  const meant = nearest(snakeCase(name), absent)
  if (meant === undefined) {
    report.warn('FLOW_FIELD_UNKNOWN', path, `${titleOf(owner)} has no field "${name}"; it is ignored.`, { onKey: true })
  } else {
    report.fault('FLOW_FIELD_TYPO', path, `${titleOf(owner)} has no field "${name}". Did you mean "${meant}"?`, {
      onKey: true,
    })
  }
}

const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

function installed(report: Report, path: Path, name: string): void {
  report.fault(
    'FLOW_FIELD_INSTALLED',
    path,
    `a document cannot have "${name}": who may do what is decided by whoever starts the process.\n` +
      'Remove it, and install the policy with --plugin.',
    { onKey: true },
  )
}

import { SluiceError } from '@sluice/core'
import { type Fault, FlowError, showFault } from '@sluice/flow'
import { EXIT } from '../exit.ts'
import { escapeControls, escapeLines } from './escape.ts'

/** Prints what was wrong with the call, a plugin or the document, and says which exit code that is. A stack is never shown. */
export function printError(error: unknown): number {
  if (error instanceof SluiceError) {
    process.stderr.write(`${textOf(error)}\n`)
    return EXIT.wrong
  }
  const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) }
  process.stderr.write(
    `INTERNAL  ${escapeControls(`${name}: ${message}`)}\n  This is a defect of sluice itself; please report it.\n`,
  )
  return EXIT.failed
}

/** Faults of a file that are told in full; the rest are counted. */
const MOST_FAULTS = 50

/** Every fault of a file, each with its place and its mend; any other error is its code and what it says. */
function textOf(error: SluiceError): string {
  if (!hasFaults(error)) return `${error.code}  ${escapeLines(error.message).replaceAll('\n', '\n  ')}`
  const { faults } = error
  const told = faults.slice(0, MOST_FAULTS).map(faultText)
  if (faults.length > MOST_FAULTS) told.push(`and ${faults.length - MOST_FAULTS} more`)
  return faults.length === 1 ? told.join('') : `${told.join('\n')}\n${faults.length} faults`
}

/** A flow or a policy file; the class of the latter is loaded where there is one. */
const hasFaults = (error: SluiceError): error is SluiceError & { readonly faults: readonly Fault[] } =>
  error instanceof FlowError || error.code === 'POLICY_FILE'

/** A fault or a warning of a document, with its JSON path. */
export function faultText(fault: Fault): string {
  const [place = '', ...rest] = escapeLines(showFault(fault)).split('\n')
  return [`${place}  ${escapeControls(fault.path)}`, ...rest].join('\n')
}

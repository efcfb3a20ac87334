import { SluiceError } from '@sluice/core'
import { FlowError } from '@sluice/flow'
import { EXIT } from '../exit.ts'
import { escapeControls } from './escape.ts'

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

/** A fault list keeps its lines, whose texts are escaped one by one; any other message is one line. */
function textOf(error: SluiceError): string {
  const message = error.message.split('\n').map(escapeControls).join('\n  ')
  return error instanceof FlowError ? message : `${error.code}  ${message}`
}

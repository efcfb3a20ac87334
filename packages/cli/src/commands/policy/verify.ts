import { verifyDecisionLog } from '@sluice/host'
import { EXIT } from '../../exit.ts'
import { escapeControls, printJson } from '../../render/escape.ts'
import type { VerifyFlags } from '../policy-options.ts'

/** Says where the chain of a decision log is broken, and the hash it ends with; exits 1 when it is. */
export async function verify(file: string, { head, json }: VerifyFlags): Promise<number> {
  const report = await verifyDecisionLog(file, head)
  const { records, faults, head: end } = report
  if (json) printJson(report)
  else {
    for (const { line, why } of faults) process.stdout.write(`${escapeControls(`${file}:${line}  ${why}`)}\n`)
    process.stderr.write(`${counted(records, 'record')}, ${counted(faults.length, 'fault')}\n`)
    if (faults.length === 0 && end !== undefined) process.stdout.write(`${end}\n`)
  }
  return faults.length === 0 ? EXIT.completed : EXIT.failed
}

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`

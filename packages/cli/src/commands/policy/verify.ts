import { type ChainLoss, verifyDecisionLog } from '@sluice/host'
import { EXIT } from '../../exit.ts'
import { escapeControls, printJson } from '../../render/escape.ts'
import type { VerifyFlags } from '../policy-options.ts'

/** Says where the chain of a decision log is broken, what was lost of it, and the hash it ends with; exits 1 when it is broken. */
export async function verify(file: string, { head, json }: VerifyFlags): Promise<number> {
  const report = await verifyDecisionLog(file, head)
  const { records, losses, faults, head: end } = report
  const dropped = losses.reduce((sum, loss) => sum + loss.dropped, 0)
  if (json) printJson(report)
  else {
    for (const { line, why } of faults) process.stdout.write(`${escapeControls(`${file}:${line}  ${why}`)}\n`)
    for (const loss of losses) process.stderr.write(`${escapeControls(`${file}:${loss.line}  ${lost(loss)}`)}\n`)
    const lostInAll = dropped === 0 ? '' : `${dropped} dropped, `
    process.stderr.write(`${counted(records, 'record')}, ${lostInAll}${counted(faults.length, 'fault')}\n`)
    if (faults.length === 0 && end !== undefined) process.stdout.write(`${end}\n`)
  }
  return faults.length === 0 ? EXIT.completed : EXIT.failed
}

const lost = ({ dropped }: ChainLoss) =>
  `says that ${counted(dropped, 'record')} before it could not be written: the chain goes on without`

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`

import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DecisionRecord } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { folderOf } from '../testing/folder.ts'
import { decisionLog, verifyDecisionLog } from './decision-log.ts'

const record = (seq: number) => ({ id: `${seq}`, seq, outcome: 'proceed' }) as unknown as DecisionRecord
const newFile = () => join(folderOf({}), 'decisions.jsonl')
const linesOf = (file: string) => readFileSync(file, 'utf8').trimEnd().split('\n')

/** Writes records as one process would. */
async function write(file: string, seqs: readonly number[], options = { chain: true }) {
  const log = decisionLog({ file, ...options })
  await Promise.all(seqs.map((seq) => log.write(record(seq))))
  await log.close()
}

/** A chained log of three records, with its lines changed. */
async function changed(change: (lines: string[]) => void): Promise<string> {
  const file = newFile()
  await write(file, [1, 2, 3])
  const lines = linesOf(file)
  change(lines)
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''))
  return file
}

describe('a decision log in a file', () => {
  it('has a record a line, in order', async () => {
    const file = newFile()
    await write(file, [1, 2], { chain: false })
    expect(linesOf(file).map((line) => JSON.parse(line))).toEqual([1, 2].map(record))
  })

  it('is a chain over processes, if that is asked for', async () => {
    const file = newFile()
    await write(file, [1, 2])
    await write(file, [3, 4])
    const report = await verifyDecisionLog(file)
    expect(report).toMatchObject({ records: 4, faults: [] })
    expect((await verifyDecisionLog(file, report.head)).faults).toEqual([])
  })

  it('has control characters as escapes, in whatever names a document has', async () => {
    const file = newFile()
    const name = 'x\u001b[31m\u007f\u009b2J\u202e\u2028'
    const log = decisionLog({ file, chain: true })
    const odd = { ...record(1), subject: { kind: 'node', name } } as unknown as DecisionRecord
    await log.write(odd)
    await log.write(record(2))
    await log.close()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
    expect(readFileSync(file, 'utf8')).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u202e]/)
    expect(JSON.parse(linesOf(file)[0] as string)).toEqual(odd)
    expect((await verifyDecisionLog(file)).faults).toEqual([])
  })

  it.each([
    { name: 'changed', change: (lines: string[]) => lines.splice(1, 1, '{"seq":9}'), line: [2, 3] },
    { name: 'taken out', change: (lines: string[]) => lines.splice(1, 1), line: [2] },
    { name: 'put in', change: (lines: string[]) => lines.splice(1, 0, '{}'), line: [2, 3] },
    { name: 'taken off the beginning', change: (lines: string[]) => lines.shift(), line: [1] },
    { name: 'swapped', change: (lines: string[]) => lines.reverse(), line: [1, 2, 3] },
    { name: 'no JSON', change: (lines: string[]) => lines.splice(1, 1, 'oops'), line: [2, 3] },
  ])('says where a record was $name', async ({ change, line }) => {
    const { faults } = await verifyDecisionLog(await changed(change))
    expect(faults.map((fault) => fault.line)).toEqual(line)
  })

  it('says that its end was taken off, to who knows what that was', async () => {
    const file = newFile()
    await write(file, [1, 2, 3])
    const { head } = await verifyDecisionLog(file)
    writeFileSync(file, `${linesOf(file).slice(0, 2).join('\n')}\n`)
    expect((await verifyDecisionLog(file)).faults).toEqual([])
    expect((await verifyDecisionLog(file, head)).faults).toMatchObject([{ line: 2 }])
  })

  it('goes on after a line that was cut off, which stays a fault', async () => {
    const file = newFile()
    await write(file, [1])
    appendFileSync(file, '{"seq":2,"outc')
    await write(file, [3])
    const { records, faults } = await verifyDecisionLog(file)
    expect({ records, faults }).toEqual({ records: 3, faults: [{ line: 2, why: 'it is no JSON' }] })
  })

  it('goes on from the last record that was written where some were lost, and says how many', async () => {
    const file = newFile()
    const [folder, away] = [dirname(file), `${dirname(file)}-away`]
    await write(file, [1])
    const log = decisionLog({ file, chain: true })
    renameSync(folder, away)
    for (const seq of [2, 3]) await expect(log.write(record(seq))).rejects.toMatchObject({ code: 'ENOENT' })
    renameSync(away, folder)
    await log.write({ ...record(4), dropped: 2 })
    await log.write(record(5))
    await log.close()
    expect(linesOf(file).map((line) => JSON.parse(line).seq)).toEqual([1, 4, 5])
    expect(await verifyDecisionLog(file)).toMatchObject({ records: 3, losses: [{ line: 2, dropped: 2 }], faults: [] })
  })

  it.each([
    { name: 'that was written in part, and is counted as lost', dropped: 1, faults: [] },
    { name: 'that was cut off, and nobody counts', dropped: undefined, faults: [2] },
  ])('may have a line $name', async ({ dropped, faults }) => {
    const file = newFile()
    await write(file, [1])
    appendFileSync(file, '{"seq":2,"outc')
    const log = decisionLog({ file, chain: true })
    await log.write({ ...record(3), ...(dropped !== undefined && { dropped }) })
    await log.close()
    expect((await verifyDecisionLog(file)).faults.map(({ line }) => line)).toEqual(faults)
  })

  it.each([
    { name: 'taken out', change: (lines: string[]) => lines.splice(1, 1), line: [2] },
    { name: 'changed', change: (lines: string[]) => lines.splice(1, 1, '{"seq":9}'), line: [2, 3] },
    { name: 'made unreadable', change: (lines: string[]) => lines.splice(1, 1, 'oops'), line: [2, 3] },
  ])('says that a record before a loss was $name: a loss explains no more than itself', async ({ change, line }) => {
    const file = newFile()
    const log = decisionLog({ file, chain: true })
    for (const one of [record(1), record(2), { ...record(5), dropped: 2 }]) await log.write(one)
    await log.close()
    const lines = linesOf(file)
    change(lines)
    writeFileSync(file, lines.map((one) => `${one}\n`).join(''))
    expect((await verifyDecisionLog(file)).faults.map((fault) => fault.line)).toEqual(line)
  })

  it('is a chain over processes however long its records are', async () => {
    const file = newFile()
    for (const bytes of [10, 70_000, 300_000, 10]) {
      const log = decisionLog({ file, chain: true })
      await log.write({ ...record(1), reason: 'é'.repeat(bytes) })
      await log.close()
    }
    expect(await verifyDecisionLog(file)).toMatchObject({ records: 4, faults: [] })
  })

  it('that is not there cannot be verified', async () => {
    await expect(verifyDecisionLog(newFile())).rejects.toMatchObject({ code: 'DECISION_LOG_READ' })
  })
})

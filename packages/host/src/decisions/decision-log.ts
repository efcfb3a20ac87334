import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type DecisionRecord, type DecisionSink, messageOf, SluiceError } from '@sluice/core'
import { fileSink, printable } from '../audit/file-sink.ts'

export interface DecisionLogOptions {
  /** A JSON-lines file, made when it is not there. One process writes to it at a time. */
  readonly file: string
  /** Each record names the hash of the one before it, so that `sluice policy verify` sees what was changed or taken out. */
  readonly chain?: boolean
  /** A record that cannot be written stops the run. Without it, the next one that can be says how many were lost. */
  readonly required?: boolean
  /** Told when records begin to be lost. */
  readonly onWarning?: (message: string) => void
}

/** A decision log in a file. */
export interface DecisionLog extends DecisionSink {
  write(record: DecisionRecord): Promise<void>
  /** Settles when all is written. */
  close(): Promise<void>
}

/** A decision log that is a file; see {@link DecisionLogOptions}. */
export function decisionLog({ file, chain = false, required = false, onWarning }: DecisionLogOptions): DecisionLog {
  const sink = fileSink(file)
  let isLosing = false
  let last: Promise<LastLine> | undefined
  let before: string | undefined
  const write = (record: DecisionRecord) => {
    const line = printable(JSON.stringify(chain && before !== undefined ? { ...record, prev: before } : record))
    before = hashOf(line)
    return Promise.resolve(sink.write(line))
  }
  /** Without a word, whoever misspelt the file would learn of it when the records are asked for. */
  const tellLoss = (failure: unknown) => {
    if (!isLosing && !required)
      onWarning?.(`decisions are not written, and lost: ${file} cannot be written to: ${messageOf(failure)}`)
    isLosing = true
  }
  const writeInChain = async (record: DecisionRecord) => {
    if (!chain) return write(record)
    last ??= lastLineOf(file)
    const { hash, cut } = await last
    if (before === undefined) {
      before = hash
      // Whoever wrote it last was ended in the middle of a line; what follows is not to be part of it.
      if (cut) await sink.write('')
    }
    return write(record)
  }
  return {
    required,
    async write(record) {
      try {
        await writeInChain(record)
        isLosing = false
      } catch (failure) {
        tellLoss(failure)
        throw failure
      }
    },
    close: () => sink.close(),
  }
}

interface LastLine {
  readonly hash: string | undefined
  /** Whether it has no end. */
  readonly cut: boolean
}

async function lastLineOf(file: string): Promise<LastLine> {
  const text = await textOf(file)
  const lines = text.split('\n')
  const end = lines.pop() ?? ''
  const line = end === '' ? lines.at(-1) : end
  return { hash: line === undefined ? undefined : hashOf(line), cut: end !== '' }
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return ''
    throw error
  }
}

const hashOf = (line: string): string => `sha256:${createHash('sha256').update(line).digest('hex')}`

/** What is wrong with a line of a chained log. */
export interface ChainFault {
  /** From 1. */
  readonly line: number
  readonly why: string
}

/** What a chained log comes to. */
export interface ChainReport {
  readonly records: number
  readonly faults: readonly ChainFault[]
  /** The hash of the last record. Kept elsewhere, it shows later that nothing was taken off the end. */
  readonly head?: string
}

/**
 * Checks that each record of a chained decision log names the one before it.
 *
 * @param head the hash that the log ended with once: one of its records must have it.
 * @throws SluiceError `DECISION_LOG_READ` for a file that cannot be read.
 */
export async function verifyDecisionLog(file: string, head?: string): Promise<ChainReport> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    const why = (error as { code?: string }).code === 'ENOENT' ? 'there is no such file' : messageOf(error)
    throw new SluiceError('DECISION_LOG_READ', `the decision log ${file} cannot be read: ${why}.`, { file })
  })
  const lines = text.split('\n')
  const faults: ChainFault[] = []
  if (lines.pop() !== '')
    faults.push({ line: lines.length + 1, why: 'it has no end: whoever wrote it was ended in between' })
  const hashes = lines.map(hashOf)
  for (const [i, line] of lines.entries()) {
    const why = faultOf(line, hashes[i - 1])
    if (why !== undefined) faults.push({ line: i + 1, why })
  }
  if (head !== undefined && !hashes.includes(head)) {
    faults.push({
      line: lines.length,
      why: `no record has the hash ${head}: what once was the end is gone, or was changed`,
    })
  }
  const end = hashes.at(-1)
  return { records: lines.length, faults, ...(end === undefined ? {} : { head: end }) }
}

function faultOf(line: string, before: string | undefined): string | undefined {
  let prev: unknown
  try {
    prev = (JSON.parse(line) as { prev?: unknown } | null)?.prev
  } catch {
    return 'it is no JSON'
  }
  if (prev === before) return undefined
  if (prev === undefined) return 'it names no record before it'
  return before === undefined
    ? 'it is the first, and names a record before it: the beginning was taken out'
    : 'the record before it is not the one that it names: one of them was changed, or something between them taken out'
}

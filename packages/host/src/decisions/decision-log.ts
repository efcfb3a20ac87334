import { createHash } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { type AuditSink, type DecisionRecord, type DecisionSink, messageOf, SluiceError } from '@sluice/core'
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
  /** Without a word, whoever misspelt the file would learn of it when the records are asked for. */
  const tellLoss = (failure: unknown) => {
    if (!isLosing && !required)
      onWarning?.(`decisions are not written, and lost: ${file} cannot be written to: ${messageOf(failure)}`)
    isLosing = true
  }
  const append = chain ? chainTo(sink, file) : (record: DecisionRecord) => sink.write(JSON.stringify(record))
  return {
    required,
    async write(record) {
      try {
        await append(record)
        isLosing = false
      } catch (failure) {
        tellLoss(failure)
        throw failure
      }
    },
    close: () => sink.close(),
  }
}

/** Writes records one after another, each with the hash of the line that the file ends with. */
function chainTo(sink: AuditSink, file: string): (record: DecisionRecord) => Promise<void> {
  let end: LastLine | undefined
  let turn: Promise<void> = Promise.resolve()
  const append = async (record: DecisionRecord) => {
    const { hash, cut } = end ?? (await lastLineOf(file))
    // Where it cannot be written, nobody knows how much of it was: the next one looks.
    end = undefined
    // Whoever wrote the last line was ended in the middle of it; what follows is not to be part of it.
    if (cut) await sink.write('')
    const line = printable(JSON.stringify(hash === undefined ? record : { ...record, prev: hash }))
    await sink.write(line)
    end = { hash: hashOf(line), cut: false }
  }
  return (record) => {
    const written = turn.then(() => append(record))
    turn = written.catch(() => undefined)
    return written
  }
}

interface LastLine {
  /** Absent where there is no line. */
  readonly hash?: string
  /** Whether it has no end. */
  readonly cut: boolean
}

const TAIL_BYTES = 64 * 1024
const NEWLINE = 0x0a

async function lastLineOf(file: string): Promise<LastLine> {
  const handle = await open(file, 'r').catch((error: { code?: string }) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (handle === undefined) return { cut: false }
  try {
    const { size } = await handle.stat()
    for (let bytes = TAIL_BYTES; ; bytes *= 2) {
      const length = Math.min(bytes, size)
      const { buffer } = await handle.read(Buffer.alloc(length), 0, length, size - length)
      const found = lastLineIn(buffer, length === size)
      if (found !== undefined) return found
    }
  } finally {
    await handle.close()
  }
}

/** `undefined` where the line begins before this tail of its file. */
function lastLineIn(tail: Buffer, isWhole: boolean): LastLine | undefined {
  if (tail.length === 0) return { cut: false }
  const cut = tail.at(-1) !== NEWLINE
  const line = cut ? tail : tail.subarray(0, -1)
  const start = line.lastIndexOf(NEWLINE) + 1
  if (start === 0 && !isWhole) return undefined
  return { hash: hashOf(line.toString('utf8', start)), cut }
}

const hashOf = (line: string): string => `sha256:${createHash('sha256').update(line).digest('hex')}`

/** What is wrong with a line of a chained log. */
export interface ChainFault {
  /** From 1. */
  readonly line: number
  readonly why: string
}

/** Records that were lost because they could not be written, as the next one that could be says. */
export interface ChainLoss {
  /** That of the record which says so, from 1. */
  readonly line: number
  readonly dropped: number
}

/** What a chained log comes to. */
export interface ChainReport {
  readonly records: number
  /** What the records say was lost between them. It is no fault: the chain goes on from the last one that was written. */
  readonly losses: readonly ChainLoss[]
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
  const read = lines.map(readLine)
  for (const [i, line] of read.entries()) {
    const why = faultOf(line, read[i - 1], read[i + 1])
    if (why !== undefined) faults.push({ line: i + 1, why })
  }
  if (head !== undefined && !read.some(({ hash }) => hash === head)) {
    faults.push({
      line: lines.length,
      why: `no record has the hash ${head}: what once was the end is gone, or was changed`,
    })
  }
  const losses = read.flatMap(({ dropped }, i) => (dropped === 0 ? [] : { line: i + 1, dropped }))
  const end = read.at(-1)?.hash
  return { records: lines.length, losses, faults, ...(end === undefined ? {} : { head: end }) }
}

interface Line {
  readonly hash: string
  readonly isJson: boolean
  readonly prev?: unknown
  /** Records that it says were lost before it. */
  readonly dropped: number
}

function readLine(line: string): Line {
  const hash = hashOf(line)
  try {
    const { prev, dropped } = (JSON.parse(line) ?? {}) as { prev?: unknown; dropped?: unknown }
    return { hash, isJson: true, prev, dropped: typeof dropped === 'number' && dropped > 0 ? dropped : 0 }
  } catch {
    return { hash, isJson: false, dropped: 0 }
  }
}

function faultOf({ isJson, hash, prev }: Line, before: Line | undefined, after: Line | undefined): string | undefined {
  // A record that could not be written may have been in part, and the next one that could be says that it was lost.
  if (!isJson) return after !== undefined && after.dropped > 0 && after.prev === hash ? undefined : 'it is no JSON'
  if (prev === before?.hash) return undefined
  if (prev === undefined) return 'it names no record before it'
  return before === undefined
    ? 'it is the first, and names a record before it: the beginning was taken out'
    : 'the record before it is not the one that it names: one of them was changed, or something between them taken out'
}

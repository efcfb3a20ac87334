import { type Fault, FlowError } from './fault.ts'
import { type Path, showPath } from './path.ts'

/** A fault before its line is known. */
export interface Remark {
  readonly code: string
  readonly path: Path
  readonly message: string
  /** Whether it is about the key at the end of `path`, not about the value there. */
  readonly onKey: boolean
  /** Where in the text, when the reader of the text knows it already. */
  readonly offset?: number
}

/** Finds remarks in the text: an offset for each, in their order. */
export type Locate = (remarks: readonly Remark[]) => readonly number[]

/** More faults than anybody reads are not kept. */
const MOST = 200

/** Collects what is wrong with one document, so that everything can be said at once. */
export class Report {
  readonly #faults: Remark[] = []
  readonly #warnings: Remark[] = []

  fault(code: string, path: Path, message: string, at: { onKey?: boolean; offset?: number } = {}): void {
    if (!this.isFull) this.#faults.push({ code, path, message, onKey: false, ...at })
  }

  warn(code: string, path: Path, message: string, at: { onKey?: boolean; offset?: number } = {}): void {
    if (this.#warnings.length < MOST) this.#warnings.push({ code, path, message, onKey: false, ...at })
  }

  /** Whether nothing more is kept, so that nobody need look for more. */
  get isFull(): boolean {
    return this.#faults.length >= MOST
  }

  get isClean(): boolean {
    return this.#faults.length === 0
  }

  /**
   * The warnings, sorted by position.
   *
   * @throws FlowError when there is any fault.
   */
  finish(text: string, locate: Locate, file: string | undefined): readonly Fault[] {
    const [first, ...rest] = placed(this.#faults, text, locate, file)
    if (first !== undefined) throw new FlowError([first, ...rest])
    return placed(this.#warnings, text, locate, file)
  }
}

function placed(remarks: readonly Remark[], text: string, locate: Locate, file: string | undefined): Fault[] {
  if (remarks.length === 0) return []
  const lines = lineStarts(text)
  const offsets = locate(remarks)
  return remarks
    .map((remark, i) => ({ remark, offset: remark.offset ?? offsets[i] ?? 0 }))
    .sort((a, b) => a.offset - b.offset)
    .map(({ remark: { code, message, path }, offset }) => ({
      code,
      message,
      path: showPath(path),
      ...(file === undefined ? {} : { file }),
      ...positionAt(lines, offset),
    }))
}

function lineStarts(text: string): number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

function positionAt(starts: readonly number[], offset: number): { line: number; column: number } {
  const after = starts.findIndex((start) => start > offset)
  const line = after === -1 ? starts.length : after
  return { line, column: offset - (starts[line - 1] ?? 0) + 1 }
}

import { SluiceError } from '@sluice/core'
import { type Fault, showFault } from '@sluice/flow'

/** The way to a value in the file: keys of objects and positions in lists. */
export type Path = readonly (string | number)[]

/** A policy file that cannot be used. Holds every fault that was found, in the order of the text. */
export class PolicyFileError extends SluiceError {
  override readonly name = 'PolicyFileError'
  readonly faults: readonly Fault[]

  constructor(faults: readonly [Fault, ...Fault[]]) {
    const [{ file = '', path, line, column }] = faults
    super('POLICY_FILE', describe(faults), { file, path, line, column })
    this.faults = faults
  }
}

const MOST_OTHERS = 8

function describe([first, ...others]: readonly [Fault, ...Fault[]]): string {
  if (others.length === 0) return showFault(first)
  const named = others.slice(0, MOST_OTHERS).map(({ code, file, line, column }) => `${code} ${file}:${line}:${column}`)
  const rest = others.length > MOST_OTHERS ? ', …' : ''
  return `${showFault(first)}\n  1 of ${others.length + 1} faults; the others: ${named.join(', ')}${rest}`
}

/** Finds a value, or its key, in the text: an offset. One that is not there is found at its nearest ancestor. */
export interface Locator {
  offsetOf(path: Path, onKey?: boolean): number
  /** Where character `index` of the text at `path` stands. */
  offsetIn(path: Path, index: number): number
}

interface Remark {
  readonly code: string
  readonly path: Path
  readonly message: string
  readonly offset: number
}

/** What to point at: the key instead of the value, a character of the value's text, or a place that is known already. */
interface At {
  readonly onKey?: boolean
  readonly index?: number
  readonly offset?: number
}

/** More faults than anybody reads are not kept. */
const MOST = 200

/** Collects what is wrong with a policy file, so that everything can be said at once. */
export class PolicyFaults {
  readonly file: string
  readonly #text: string
  readonly #remarks: Remark[] = []
  locator: Locator = { offsetOf: () => 0, offsetIn: () => 0 }

  constructor(text: string, file: string) {
    this.#text = text
    this.file = file
  }

  /** @param message what is wrong, as a sentence; the mend on the same line or those after. */
  add(code: string, path: Path, message: string, { onKey, index, offset }: At = {}): void {
    if (this.#remarks.length >= MOST) return
    const at = offset ?? (index === undefined ? this.locator.offsetOf(path, onKey) : this.locator.offsetIn(path, index))
    this.#remarks.push({ code, path, offset: at, message: index === undefined ? message : this.#pointed(message, at) })
  }

  /** Adds what was thrown about something that the file names; an error of nobody's is thrown on. */
  addError(error: unknown, path: Path): void {
    if (!(error instanceof SluiceError)) throw error
    this.add(error.code, path, error.message)
  }

  get isClean(): boolean {
    return this.#remarks.length === 0
  }

  /** `sluice.yaml:8`, where an entry begins. */
  originOf(path: Path): string {
    return `${this.file}:${this.#positionAt(this.locator.offsetOf(path)).line}`
  }

  /** @throws PolicyFileError when there is any fault. */
  finish(): void {
    const [first, ...rest] = this.#remarks
      .toSorted((a, b) => a.offset - b.offset)
      .map(({ code, path, message, offset }): Fault => {
        return { code, message, path: showPath(path), file: this.file, ...this.#positionAt(offset) }
      })
    if (first !== undefined) throw new PolicyFileError([first, ...rest])
  }

  /** The message, and the line with a caret below the place. */
  #pointed(message: string, offset: number): string {
    const start = this.#text.lastIndexOf('\n', offset - 1) + 1
    const end = this.#text.indexOf('\n', offset)
    const line = this.#text.slice(start, end === -1 ? undefined : end).trimEnd()
    const indent = line.length - line.trimStart().length
    return `${message}\n  ${line.slice(indent)}\n  ${' '.repeat(Math.max(0, offset - start - indent))}^`
  }

  #positionAt(offset: number): { line: number; column: number } {
    const before = this.#text.slice(0, offset)
    return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
  }
}

const PLAIN_KEY = /^[A-Za-z_$][\w$]*$/

const showPath = (path: Path): string =>
  `$${path
    .map((key) => (typeof key === 'number' ? `[${key}]` : PLAIN_KEY.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`))
    .join('')}`

import type { Path } from '../faults/path.ts'
import type { Remark, Report } from '../faults/report.ts'
import { checkKey, MAX_DEPTH, syntaxFault, tooDeep } from './limits.ts'
import type { Reading } from './reading.ts'
import { type Frame, JsonSyntax, scanJson } from './scan-json.ts'

/** Reads JSON. What is wrong with the text goes to the report; `undefined` when nothing can be made of it. */
export function readJson(text: string, report: Report): Reading | undefined {
  if (!check(text, report)) return undefined
  return { value: JSON.parse(text), locate: (remarks) => locate(text, remarks) }
}

const pathOf = (frames: readonly Frame[]): Path => frames.map((frame) => frame.at)

class TooDeep {}

function check(text: string, report: Report): boolean {
  const keys: Set<string>[] = []
  let isUsable = true
  try {
    scanJson(text, {
      open(offset, frames) {
        keys.push(new Set())
        if (frames.length <= MAX_DEPTH) return
        tooDeep(report, { path: pathOf(frames.slice(0, -1)), offset })
        throw new TooDeep()
      },
      key(offset, frames) {
        const at = () => ({ path: pathOf(frames), offset })
        if (!checkKey(report, keys.at(-1) as Set<string>, frames.at(-1)?.at as string, at)) isUsable = false
      },
      close: () => keys.pop(),
    })
    return isUsable
  } catch (error) {
    if (error instanceof TooDeep) return false
    if (!(error instanceof JsonSyntax)) throw error
    const found = text[error.offset] === undefined ? 'the text ends' : `there is ${JSON.stringify(text[error.offset])}`
    syntaxFault(report, `this is no JSON: ${error.expected} is expected here, and ${found}.`, error.offset)
    return false
  }
}

/** A place that is looked for, and those below it. */
interface Wanted {
  readonly below: Map<string | number, Wanted>
  key?: number
  value?: number
}

/** One walk over the text for all remarks. A path that is not there is found at its nearest ancestor. */
function locate(text: string, remarks: readonly Remark[]): number[] {
  const root: Wanted = { below: new Map() }
  for (const { path } of remarks) enlist(root, path)
  const trail: (Wanted | undefined)[] = []
  const here = (frames: readonly Frame[]) =>
    frames.length === 0 ? root : trail[frames.length - 1]?.below.get(frames.at(-1)?.at as string | number)
  scanJson(text, {
    open(_, frames) {
      trail.push(here(frames.slice(0, -1)))
    },
    close: () => trail.pop(),
    key(offset, frames) {
      const wanted = here(frames)
      if (wanted) wanted.key = offset
    },
    value(offset, frames) {
      const wanted = here(frames)
      if (wanted) wanted.value = offset
    },
  })
  return remarks.map((remark) => offsetOf(root, remark))
}

function enlist(root: Wanted, path: Path): void {
  let wanted = root
  for (const key of path) {
    const next = wanted.below.get(key) ?? { below: new Map() }
    wanted.below.set(key, next)
    wanted = next
  }
}

function offsetOf(root: Wanted, { path, onKey }: Remark): number {
  let wanted = root
  for (const key of path) {
    const next = wanted.below.get(key)
    if (next?.value === undefined) return wanted.value ?? 0
    wanted = next
  }
  return (onKey ? wanted.key : undefined) ?? wanted.value ?? 0
}

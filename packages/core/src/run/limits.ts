import { SluiceError } from '../errors/error.ts'

/** What a run may spend. They belong to whoever starts the process; a graph or a request may only ask for less. */
export interface Limits {
  /** Supersteps plus granted node retries of one run. */
  readonly maxIterations: number
  /** Tasks in one superstep. */
  readonly maxTasks: number
  /** Goes at one node for each time it is arrived at. */
  readonly maxNodeAttempts: number
  /** Model calls of an agent for one answer, each with the tool calls it asks for. */
  readonly maxToolRounds: number
  /** Milliseconds. */
  readonly timeoutMs: number
}

export const DEFAULT_LIMITS: Limits = {
  maxIterations: 50,
  maxTasks: 10_000,
  maxNodeAttempts: 3,
  maxToolRounds: 10,
  timeoutMs: 300_000,
}

/** Goes at one model call; fixed, for a ceiling that can be raised is none. */
export const MAX_MODEL_ATTEMPTS = 3

/** How deep runs may be nested. */
export const MAX_DEPTH_OF_RUNS = 16

/** @throws SluiceError `LIMIT_INVALID` for one that is no whole number of 1 or more. */
export function readLimits(limits: Partial<Limits> = {}): Limits {
  for (const [name, value] of Object.entries(limits)) {
    if (!Object.hasOwn(DEFAULT_LIMITS, name)) {
      throw new SluiceError(
        'LIMIT_INVALID',
        `there is no limit "${name}"; limits are: ${Object.keys(DEFAULT_LIMITS).join(', ')}.`,
      )
    }
    if (value !== undefined) requireWhole(name, value)
  }
  return { ...DEFAULT_LIMITS, ...Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined)) }
}

/** @throws SluiceError `LIMIT_INVALID` for a count that is no whole number of 1 or more. */
export function requireWhole(name: string, value: number): void {
  if (Number.isInteger(value) && value >= 1) return
  throw new SluiceError('LIMIT_INVALID', `${name} must be a whole number of 1 or more, not ${value}.`)
}

/** @throws SluiceError `LIMIT_INVALID` for a time that is no number above 0. */
export function requireTime(timeoutMs: number): void {
  if (timeoutMs > 0) return
  throw new SluiceError('LIMIT_INVALID', `timeoutMs must be milliseconds above 0, not ${timeoutMs}.`)
}

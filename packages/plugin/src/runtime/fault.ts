import { FAULT, type WireError } from '../wire/frames.ts'

/** An error that goes over the wire with its own code. */
export class WireFault extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** What a handler threw, as the host is told: no stack, no cause. */
export function wireErrorOf(error: unknown): WireError {
  if (error instanceof WireFault) return { code: error.code, message: error.message }
  if (!(error instanceof Error)) return { code: FAULT.handler, message: String(error) }
  const { name, message } = error
  const code = (error as { code?: unknown }).code
  return { code: FAULT.handler, message, data: typeof code === 'string' ? { name, code } : { name } }
}

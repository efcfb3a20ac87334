/** Where something happened, as plain data: only the fields that apply are present. */
export interface Place {
  readonly run?: string
  readonly graph?: string
  readonly node?: string
  readonly seam?: string
  readonly half?: string
  readonly policy?: string
  readonly plugin?: string
  readonly tool?: string
  readonly model?: string
  readonly round?: number
  readonly field?: string
  readonly path?: string
  readonly file?: string
  readonly line?: number
  readonly column?: number
}

/**
 * The base of every error that Sluice raises. Match `code`, never the text: the text is for people and says what
 * happened, where, and how to mend it; the code is stable and stands in `docs/errors.md`.
 */
export class SluiceError extends Error {
  override readonly name: string = 'SluiceError'
  readonly code: string
  readonly at: Place

  constructor(code: string, message: string, at: Place = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.at = at
  }
}

/** What may be shown of an error to a policy, an event or a client: never a stack, never a cause. */
export interface ShownError {
  readonly name: string
  readonly message: string
  readonly code?: string
}

/** Reads `name`, `message` and `code` from whatever was thrown, an `Error` or not. */
export function showError(error: unknown): ShownError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error) }
  const code = (error as { code?: unknown }).code
  const shown = { name: error.name, message: error.message }
  return typeof code === 'string' ? { ...shown, code } : shown
}

/** The message of whatever was thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

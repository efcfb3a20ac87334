/** Where something happened, as plain data: only the fields that apply are present. */
export interface Place {
  readonly run?: string
  readonly graph?: string
  readonly thread?: string
  readonly branch?: string
  /** The key of an ask. */
  readonly ask?: string
  readonly node?: string
  readonly seam?: string
  readonly half?: string
  readonly policy?: string
  readonly plugin?: string
  readonly skill?: string
  /** Middleware of the graph's author. */
  readonly middleware?: string
  readonly hook?: string
  readonly tool?: string
  readonly model?: string
  readonly round?: number
  readonly field?: string
  readonly path?: string
  readonly file?: string
  readonly line?: number
  readonly column?: number
  /** How a policy failed, where the error knows more than that it was thrown. */
  readonly failed?: 'died' | 'nonsense'
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

/** Reads `name`, `message` and `code` from whatever was thrown, an `Error` or not. Never throws itself. */
export function showError(error: unknown): ShownError {
  const shown = { name: textIn(error, 'name') ?? 'Error', message: messageOf(error) }
  const code = textIn(error, 'code')
  return code === undefined ? shown : { ...shown, code }
}

/** The message of whatever was thrown. */
export const messageOf = (error: unknown): string => textIn(error, 'message') ?? inWords(error)

/** A member that is text. What was thrown may come from anywhere, and may even throw when it is looked at. */
function textIn(error: unknown, member: 'name' | 'message' | 'code'): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  try {
    const value = (error as Readonly<Record<string, unknown>>)[member]
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

function inWords(error: unknown): string {
  try {
    return String(error)
  } catch {
    return 'something that cannot be shown was thrown'
  }
}

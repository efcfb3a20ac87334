/** The version of the protocol; the host and a plugin must speak the same. */
export const PROTOCOL = 1
/** Bytes of one line. */
export const MAX_LINE_BYTES = 8 * 1024 * 1024
/** Characters of an error's message that cross the wire. */
const MAX_ERROR_LENGTH = 64 * 1024
/** Levels of nesting in one message. */
export const MAX_MESSAGE_DEPTH = 128

/** Characters of JSON that a policy may keep. */
export const MAX_KEPT_LENGTH = 64 * 1024

/** What a plugin may ask of its host while it serves a call, once its manifest requested it. */
export const CAPABILITIES = ['runTool', 'emitEvent', 'log', 'callModel'] as const
export type Capability = (typeof CAPABILITIES)[number]

/** Codes of error answers: the first five are those of JSON-RPC, the rest ours. */
export const FAULT = {
  parse: -32700,
  notAMessage: -32600,
  noMethod: -32601,
  params: -32602,
  internal: -32603,
  /** A handler threw. */
  handler: -32000,
  /** The call was given up. */
  cancelled: -32001,
  /** The capability was not requested in the manifest. */
  notGranted: -32002,
  /** The call it names is not being served, or does not offer this. */
  noCall: -32003,
  /** The plugin declared a component and serves no handler for it. */
  noHandler: -32004,
  /** Too much is pending. */
  busy: -32005,
  /** The message would be longer than a line may be. */
  tooLong: -32006,
} as const

export interface WireError {
  readonly code: number
  readonly message: string
  readonly data?: { readonly name?: string; readonly code?: string }
}

/** The host counts its requests; a plugin may name its own as it likes. */
export type Id = number | string

// Frames are put together by hand around values that are already text: they are most of what crosses the pipe.

export const requestLine = (id: number, method: string, params: string): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}\n`

export const notificationLine = (method: string, params: string): string =>
  `{"jsonrpc":"2.0","method":"${method}","params":${params}}\n`

export const resultLine = (id: Id, result: string): string =>
  `{"jsonrpc":"2.0","id":${textOfId(id)},"result":${result}}\n`

export const errorLine = (id: Id, error: WireError): string =>
  `{"jsonrpc":"2.0","id":${textOfId(id)},"error":${JSON.stringify({ ...error, message: error.message.slice(0, MAX_ERROR_LENGTH) })}}\n`

const textOfId = (id: Id) => (typeof id === 'number' ? id : JSON.stringify(id))

/** Whether JSON text is too long to be sent: it has at most three bytes for each unit of its length, and its frame under 100. */
export const isTooLong = (text: string): boolean =>
  text.length > MAX_LINE_BYTES / 3 - 100 && Buffer.byteLength(text) > MAX_LINE_BYTES - 100

import { onAbort } from './abort.ts'
import { Child, type Ending, type Program } from './child.ts'

/** Bytes of stderr that are kept, from its beginning. */
const MAX_STDERR_BYTES = 4096

export interface OnceOptions {
  /** Written to its stdin, which is then closed. */
  readonly input: string
  readonly signal: AbortSignal
  readonly timeoutMs: number
  readonly maxStdoutBytes: number
}

export interface Once {
  /** Why the program was killed before it ended: its time was over, or it printed too much. */
  readonly cut?: 'time' | 'output'
  readonly ending: Ending
  readonly stdout: string
  /** Its beginning, trimmed. */
  readonly stderr: string
}

/**
 * Runs a program once. It and all it started are killed when the signal aborts, when the time is over and when it prints too
 * much.
 *
 * @throws the signal's reason.
 */
export async function runOnce(
  program: Program,
  { input, signal, timeoutMs, maxStdoutBytes }: OnceOptions,
): Promise<Once> {
  signal.throwIfAborted()
  const child = new Child(program)
  let cut: 'time' | 'output' | 'signal' | undefined
  const end = (why: typeof cut) => {
    if (cut !== undefined) return
    cut = why
    child.kill('SIGKILL')
  }
  const stdout = gather(child.process.stdout, maxStdoutBytes, () => end('output'))
  const stderr = gather(child.process.stderr, MAX_STDERR_BYTES)
  const timer = setTimeout(end, timeoutMs, 'time')
  const forget = onAbort(signal, () => end('signal'))
  child.process.stdin.end(input)
  const ending = await child.ended
  clearTimeout(timer)
  forget()
  if (cut === 'signal') throw signal.reason
  return { ...(cut !== undefined && { cut }), ending, stdout: stdout(), stderr: stderr().trim() }
}

/** What comes out of a pipe, up to so many bytes; `onMore` is told of more. */
function gather(pipe: NodeJS.ReadableStream, maxBytes: number, onMore?: () => void): () => string {
  const chunks: Buffer[] = []
  let bytes = 0
  pipe.on('data', (chunk: Buffer) => {
    if (bytes < maxBytes) chunks.push(chunk.subarray(0, maxBytes - bytes))
    bytes += chunk.length
    if (bytes > maxBytes) onMore?.()
  })
  return () => Buffer.concat(chunks).toString()
}

/** How a program ended, in words that continue a sentence about it. */
export const endingText = ({ code, signal }: Ending): string =>
  signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`

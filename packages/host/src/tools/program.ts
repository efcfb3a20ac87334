import { type JsonObject, SluiceError } from '@sluice/core'
import { onAbort } from '../child/abort.ts'
import { Child, type Program } from '../child/child.ts'

/** Milliseconds a tool program may run. */
export const TOOL_TIMEOUT_MS = 30_000
const MAX_OUTPUT_BYTES = 8 * 1024 * 1024
/** Bytes of stderr that an error quotes, from its beginning. */
const MAX_QUOTED_BYTES = 4096

/**
 * Runs a tool program once: the arguments as JSON on its stdin, one JSON value from its stdout (nothing is `{}`). The program
 * and all it started are killed when the signal aborts, when the time is over and when it prints too much.
 *
 * @throws the signal's reason; SluiceError `TOOL_TIMED_OUT` (the message contains `timed out`), `TOOL_OUTPUT` for output that
 *   is too long or no JSON, `TOOL_FAILED` with exit code and stderr.
 */
export async function runProgram(
  tool: string,
  program: Program,
  args: JsonObject,
  signal: AbortSignal,
  timeoutMs = TOOL_TIMEOUT_MS,
): Promise<unknown> {
  signal.throwIfAborted()
  const child = new Child(program)
  const output = gather(child, tool)
  const timer = setTimeout(
    () => output.end(error('TOOL_TIMED_OUT', tool, `timed out after ${timeoutMs} ms`)),
    timeoutMs,
  )
  const forget = onAbort(signal, () => output.end(signal.reason))
  child.process.stdin.end(JSON.stringify(args))
  const ending = await child.ended
  clearTimeout(timer)
  forget()
  if (output.failed) throw output.failure
  if (ending.error !== undefined) throw error('TOOL_FAILED', tool, `could not be started: ${ending.error.message}`)
  if (ending.code !== 0) {
    const how = ending.signal === null ? `ended with exit code ${ending.code}` : `was ended by ${ending.signal}`
    throw error('TOOL_FAILED', tool, `${how}: ${output.stderr || 'it said nothing on stderr'}`)
  }
  return parse(tool, output.stdout)
}

/** What a program prints, up to the limits. `end` kills it, and is why. */
function gather(child: Child, tool: string) {
  const stdout: Buffer[] = []
  const stderr: Buffer[] = []
  let [outBytes, errBytes] = [0, 0]
  const state = {
    failed: false,
    failure: undefined as unknown,
    end(failure: unknown) {
      if (state.failed) return
      state.failed = true
      state.failure = failure
      child.kill('SIGKILL')
    },
    get stdout() {
      return Buffer.concat(stdout).toString()
    },
    get stderr() {
      return Buffer.concat(stderr).subarray(0, MAX_QUOTED_BYTES).toString().trim()
    },
  }
  child.process.stdout.on('data', (chunk: Buffer) => {
    outBytes += chunk.length
    if (outBytes <= MAX_OUTPUT_BYTES) stdout.push(chunk)
    else state.end(error('TOOL_OUTPUT', tool, `printed more than ${MAX_OUTPUT_BYTES} bytes`))
  })
  child.process.stderr.on('data', (chunk: Buffer) => {
    if (errBytes < MAX_QUOTED_BYTES) stderr.push(chunk)
    errBytes += chunk.length
  })
  return state
}

function parse(tool: string, text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text)
  } catch (cause) {
    const quoted = text.length > 200 ? `${text.slice(0, 200)}…` : text.trim()
    throw error('TOOL_OUTPUT', tool, `printed what is not JSON: ${quoted}`, cause)
  }
}

const error = (code: string, tool: string, why: string, cause?: unknown) =>
  new SluiceError(code, `tool "${tool}" ${why}.`, { tool }, cause)

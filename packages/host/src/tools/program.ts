import { type JsonObject, SluiceError } from '@sluice/core'
import type { Program } from '../child/child.ts'
import { endingText, runOnce } from '../child/run-once.ts'

/** Milliseconds a tool program may run. */
export const TOOL_TIMEOUT_MS = 30_000
const MAX_OUTPUT_BYTES = 8 * 1024 * 1024

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
  const { cut, ending, stdout, stderr } = await runOnce(program, {
    input: JSON.stringify(args),
    signal,
    timeoutMs,
    maxStdoutBytes: MAX_OUTPUT_BYTES,
  })
  if (cut === 'time') throw error('TOOL_TIMED_OUT', tool, `timed out after ${timeoutMs} ms`)
  if (cut === 'output') throw error('TOOL_OUTPUT', tool, `printed more than ${MAX_OUTPUT_BYTES} bytes`)
  if (ending.error !== undefined) throw error('TOOL_FAILED', tool, `could not be started: ${ending.error.message}`)
  if (ending.code !== 0) {
    throw error('TOOL_FAILED', tool, `${endingText(ending)}: ${stderr || 'it said nothing on stderr'}`)
  }
  return parse(tool, stdout)
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

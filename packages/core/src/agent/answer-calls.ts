import type { ChatMessage, ToolCallRequest } from '../chat/chat.ts'
import { messageOf, SluiceError } from '../errors/error.ts'
import type { NodeContext } from '../graph/context.ts'
import type { JsonObject } from '../json/json.ts'
import { adopt } from '../json/own.ts'
import { Task } from '../run/task.ts'
import { RefusedError, ToolDeniedError, ToolReplyError } from '../seams/failure.ts'
import { typeOf } from '../seams/hooks.ts'
import { parseToolArguments, type Tool } from '../tools/tool.ts'

/**
 * What becomes of a tool call that failed: a text for the model to read, the end of the node, or the text that a function makes
 * of the error. A refused call is a text in any case.
 */
export type ToolErrors = 'return' | 'raise' | ((error: unknown, call: ToolCallRequest) => string)

/** Several calls of one round failed, and their errors are raised. */
export class ToolGroupError extends SluiceError {
  override readonly name = 'ToolGroupError'
  /** What each of them threw, in the order of the calls. */
  readonly errors: readonly unknown[]

  constructor(node: string, errors: readonly unknown[]) {
    super('TOOLS_FAILED', `node "${node}": ${errors.length} tool calls failed: ${errors.map(messageOf).join('; ')}`, {
      node,
    })
    this.errors = errors
  }
}

/** Mistakes of whoever wrote the agent or starts it: no other call of a model mends them. */
const MISTAKES = [
  'CONTEXT_MISSING',
  'GRAPH_INVALID',
  'MIDDLEWARE_ORDER',
  'MODEL_UNKNOWN',
  'STATE_CONFIG',
  'TOOL_CONFIG',
  'TOOL_DUPLICATE',
]

export const isMistake = (error: unknown): boolean => error instanceof SluiceError && MISTAKES.includes(error.code)

/** Why a call never came to a tool, as the text that answers it says; nothing where it did, or where others gave the text. */
export function unrunIn(answer: string): 'unknown' | 'arguments' | undefined {
  if (/^Error: there is no tool "/.test(answer)) return 'unknown'
  return /^Error: (?:invalid arguments for tool "|the arguments are no JSON)/.test(answer) ? 'arguments' : undefined
}

/**
 * Runs these calls, all at once, and answers each by one tool message, in their order: providers refuse a conversation in
 * which a call is not answered. When errors are raised, it is after all of them have ended: the error itself, or a
 * {@link ToolGroupError} with all of them.
 */
export async function answerCalls(
  ctx: NodeContext,
  tools: ReadonlyMap<string, Tool>,
  calls: readonly ToolCallRequest[],
  toolErrors: ToolErrors = 'return',
): Promise<readonly ChatMessage[]> {
  const errors: unknown[] = []
  const answers = await Promise.all(
    calls.map((call) =>
      answerOf(ctx, tools, call, toolErrors).catch((error) => {
        errors.push({ call, error })
        return ''
      }),
    ),
  )
  if (errors.length > 0) throw raised(ctx.nodeName, calls, errors as Failed[])
  return calls.map(
    ({ id }, i) => adopt({ role: 'tool', tool_call_id: id, content: answers[i] }) as unknown as ChatMessage,
  )
}

interface Failed {
  readonly call: ToolCallRequest
  readonly error: unknown
}

function raised(node: string, calls: readonly ToolCallRequest[], failed: readonly Failed[]): unknown {
  const [only] = failed
  if (failed.length === 1 && only !== undefined) return only.error
  const ordered = [...failed].sort((a, b) => calls.indexOf(a.call) - calls.indexOf(b.call))
  return new ToolGroupError(
    node,
    ordered.map(({ error }) => error),
  )
}

async function answerOf(
  ctx: NodeContext,
  tools: ReadonlyMap<string, Tool>,
  call: ToolCallRequest,
  toolErrors: ToolErrors,
): Promise<string> {
  // The model reads it below the outcome: whoever judges that outcome has done so before.
  let told = ''
  const tell = (line: string) => {
    told = `\n\n[${line}]`
  }
  try {
    const { tool, args } = resolveCall(ctx, tools, call)
    const result = await Task.of(ctx).callToolAs('model', tool, args, call.id, tell)
    return (typeof result === 'string' ? result : JSON.stringify(result)) + told
  } catch (error) {
    return textOf(error, call, toolErrors) + told
  }
}

function textOf(error: unknown, call: ToolCallRequest, toolErrors: ToolErrors): string {
  // The reason alone: who refused, and where, is for the operator and not for the model.
  if (error instanceof RefusedError) {
    const ofPolicy = error.at.policy !== undefined
    return `Refused: ${ofPolicy ? cut(error.reason) : error.reason}`
  }
  if (error instanceof ToolDeniedError) return `Refused: ${error.reason}`
  if (error instanceof ToolReplyError) return error.reply
  if (isMistake(error) || toolErrors === 'raise') throw error
  if (toolErrors === 'return') return `Error: ${messageOf(error)}`
  const text: unknown = toolErrors(error, call)
  if (typeof text === 'string') return text
  throw new TypeError(`toolErrors made ${typeOf(text)} of an error of tool "${call.name}"; it must make a text.`)
}

/** What a policy may say to a model, however much a plugin sends. */
const MAX_REASON_BYTES = 1_024

/** Whole characters, and where some are left out, "…". */
function cut(reason: string): string {
  let text = ''
  let bytes = 0
  for (const character of reason) {
    const code = character.codePointAt(0) as number
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
    if (bytes > MAX_REASON_BYTES) return `${text}…`
    text += character
  }
  return text
}

function resolveCall(
  ctx: NodeContext,
  tools: ReadonlyMap<string, Tool>,
  { id, name, arguments: text }: ToolCallRequest,
): { tool: Tool; args: JsonObject } {
  return Task.of(ctx).orReport(id, name, () => {
    const tool = tools.get(name)
    if (tool !== undefined) return { tool, args: parseToolArguments(text) }
    throw new SluiceError(
      'TOOL_UNKNOWN',
      `there is no tool "${name}"; tools are: ${[...tools.keys()].join(', ') || 'none'}.`,
      { tool: name },
    )
  })
}

/** @throws TypeError for a policy that is none. */
export function requireToolErrors(toolErrors: unknown, who: string): void {
  if (toolErrors === undefined || toolErrors === 'return' || toolErrors === 'raise') return
  if (typeof toolErrors === 'function') return
  throw new TypeError(`${who} has toolErrors ${JSON.stringify(toolErrors)}; give 'return', 'raise' or a function.`)
}

import { messageOf, SluiceError, showError } from '../../errors/error.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import { own, ownObject } from '../../json/own.ts'
import { Call, type CallOptions, type SeamSpec } from '../../seams/call.ts'
import { askerOf, RefusedError } from '../../seams/failure.ts'
import { Kept, keptMissing } from '../../seams/kept.ts'
import type { Caller, Subject } from '../../seams/subject.ts'
import { isThenable } from '../../seams/thenable.ts'
import type { Keeping, KeptInTool } from '../../tools/inside.ts'
import type { Tool, ToolContext } from '../../tools/tool.ts'
import type { Task } from '../task.ts'
import type { Flown } from '../threads/flight.ts'
import { CallAsking } from './ask-call.ts'
import { AskingHere } from './ask-here.ts'
import type { CallSite } from './call-site.ts'
import { withDeadline } from './deadline.ts'
import type { Gates } from './gates.ts'
import { InsideTool } from './inside-tool.ts'

/** A tool call on its way. */
export class ToolCall extends Call<JsonObject> {
  declare readonly site: CallSite
  readonly tool: Tool
  readonly signal: AbortSignal
  /** What the tool did in the run itself; absent where no node called it. */
  readonly within: InsideTool | undefined

  constructor(
    site: CallSite,
    subject: Subject,
    tool: Tool,
    args: JsonObject,
    signal: AbortSignal,
    rest: CallOptions,
    inside?: InsideTool,
  ) {
    super(site, subject, args, rest)
    this.tool = tool
    this.signal = signal
    this.within = inside
  }

  override askHere(): AskingHere | undefined {
    const { subject, tool, maker } = this
    // Whoever makes a call is the execution of a node; those of middleware have nobody.
    const task = maker as Task | undefined
    if (task === undefined) return undefined
    const about = (input: Json) => ({ tool: tool.name, arguments: input })
    return new AskingHere({ scope: task.scope, task, subject, prefix: `${task.keyPrefix}:${tool.name}`, about })
  }

  /** What the tool itself may ask of the run. */
  get inside(): InsideTool {
    if (this.within !== undefined) return this.within
    throw new SluiceError('TOOL_CALL', `tool "${this.tool.name}" asks or runs a graph, and no node called it.`, {
      tool: this.tool.name,
    })
  }

  get at(): { nodeName: string; nodeType: string; toolName: string; toolCallId: string } {
    const { nodeName = '', nodeType = '', toolCallId = '' } = this.subject
    return { nodeName, nodeType, toolName: this.tool.name, toolCallId }
  }
}

export const toolCallSpec: SeamSpec<JsonObject, Json> = {
  seam: 'toolCall',
  misfits: true,
  setOut: (call) => (call as ToolCall).within?.setOut(),
  perform: (call) => run(call as ToolCall),
  readInput: (value, call, what) => readArguments((call as ToolCall).tool, value, what),
  readValue: (value, call) => readResult((call as ToolCall).tool, value),
}

async function run(call: ToolCall): Promise<Json> {
  const { tool, site, tripSignal } = call
  const until = tripSignal === undefined ? call.signal : AbortSignal.any([call.signal, tripSignal])
  if (site.sink !== null) site.emit({ type: 'tool_call', ...call.at, toolArgs: call.input })
  const work = (signal: AbortSignal) => tool.run(call.input, contextOf(call, signal))
  const { timeoutMs } = tool
  const over = (ms: number) =>
    new SluiceError('TOOL_TIMED_OUT', `tool "${tool.name}" timed out after ${ms} ms`, { tool: tool.name })
  const result =
    timeoutMs === undefined ? await work(until) : await withDeadline(site.timers, timeoutMs, until, over, work)
  if (call.within?.asking) await call.within.answered()
  return readResult(tool, result)
}

/** A tool may come from anywhere: what is judged is ours, so that nobody changes it afterwards. */
const readResult = (tool: Tool, value: unknown): Json =>
  own(tool.readResult(value), `the result of tool "${tool.name}"`)

function contextOf(call: ToolCall, signal: AbortSignal): ToolContext {
  const { site, at } = call
  const { nodeName, nodeType, toolCallId } = at
  return {
    callId: toolCallId,
    signal,
    nodeName,
    context: site.context,
    ask: (id, payload, options) => call.inside.ask(id, payload, options) as never,
    run: (graph, input, options) => call.inside.run(graph, input, options, signal === call.signal ? undefined : signal),
    keptOf: (middleware) => keptOf(call, middleware),
    emit: (data) => {
      const owned = own(data, `what tool "${at.toolName}" emits`)
      call.within?.active()
      if (site.sink !== null && !call.over) site.emit({ type: 'custom', nodeName, nodeType, data: owned })
    },
  }
}

/** What a middleware keeps is the run's, whether or not it stands in the graph that calls its tool. */
function keptOf<Value>({ site, place }: ToolCall, { name, kept: options }: Keeping<Value>): KeptInTool<Value> {
  if (options === undefined) throw keptMissing(name)
  const mark = place && JSON.stringify([...place, 'tool'])
  const by = askerOf({ name })
  site.kept.declare(by, options)
  const kept = new Kept(site.kept, by, options, mark)
  return {
    get value() {
      return kept.value
    },
    revisit: site.kept.wasChangedAt(by, mark),
    update: (change) => kept.update(change),
  }
}

/** Broken or invalid arguments reach no policy: the caller, or the model, gets the error to act on. */
export function readArguments(tool: Tool, args: unknown, what: string): JsonObject {
  try {
    return ownObject(tool.readArguments(ownObject(args, what)), what)
  } catch (cause) {
    throw new SluiceError(
      'TOOL_ARGUMENTS',
      `invalid arguments for tool "${tool.name}": ${messageOf(cause)}`,
      { tool: tool.name },
      cause,
    )
  }
}

/**
 * Calls a tool from a node: validated, journaled, judged by the policies, reported. `tell` is called with what its caller is told
 * beside the outcome, before that is handed back.
 */
export async function callTool(
  task: Task,
  tool: Tool,
  args: JsonObject,
  caller: Caller,
  callId: string | undefined,
  flown: Flown,
  tell?: (told: string) => void,
): Promise<Json> {
  const { scope, log } = task
  const given = task.orReport(callId, tool.name, () =>
    readArguments(tool, args, `the arguments of tool "${tool.name}"`),
  )
  const entered = log?.journal.enter('tool', tool.name, given)
  const entry = isThenable(entered) ? await entered : entered
  const toolCallId = callId ?? (entry === undefined ? scope.nextCallId() : task.callIdOf(entry))
  const { nodeName, node } = task
  // A literal, not a copy of the task's subject with more members: that costs ten times as much.
  const subject = { nodeName, nodeType: node.type, toolName: tool.name, toolCallId, caller, source: tool.source }
  if (entry !== undefined) entry.repeatable = tool.idempotent
  const asking =
    log &&
    new CallAsking({
      scope,
      task,
      log,
      subject,
      entry,
      about: (input) => ({ tool: tool.name, arguments: input ?? given }),
      waits: flown.waits,
    })
  const inside = new InsideTool(task, tool.name, log, entry, flown)
  const rest = { entry, asking, nestedIn: scope.nestedIn, maker: task }
  const call = new ToolCall(scope, subject, tool, given, task.signal, rest, inside)
  if (tell === undefined) return settle(call, scope.gates)
  return settle(call, scope.gates).finally(() => {
    const told = entry?.told ?? call.told
    if (told !== undefined) tell(told)
  })
}

/** Sends a call through the gate and reports how it went, after everybody has had their say. */
export async function settle(call: ToolCall, gates: Gates): Promise<Json> {
  const { site } = call
  try {
    const toolResult = await gates.toolCall(call)
    if (site.sink !== null) site.emit({ type: 'tool_result', ...call.at, toolResult })
    return toolResult
  } catch (error) {
    if (site.sink !== null)
      site.emit({
        type: 'tool_result',
        ...call.at,
        ...(error instanceof RefusedError ? { refused: error.reason } : { error: showError(error) }),
      })
    throw error
  }
}

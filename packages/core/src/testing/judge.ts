import type { ChatRequest } from '../chat/chat.ts'
import { messages } from '../chat/messages.ts'
import { editRequest, readResponse } from '../chat/read.ts'
import { node } from '../graph/node.ts'
import { END, START } from '../graph/route.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { own } from '../json/own.ts'
import { graph } from '../run/graph.ts'
import { createRuntime } from '../run/runtime.ts'
import { Task } from '../run/task.ts'
import { Call, type SeamSpec } from '../seams/call.ts'
import type { Consultation } from '../seams/consultation.ts'
import type { DecisionRecord } from '../seams/decision.ts'
import { compileGate } from '../seams/gate.ts'
import type { ShownOutcome } from '../seams/outcome.ts'
import type { Policy } from '../seams/policy.ts'
import type { Subject } from '../seams/subject.ts'
import type { Action, Half, Seam } from '../seams/table.ts'
import { isThenable } from '../seams/thenable.ts'
import { state } from '../state/state.ts'
import type { Tool } from '../tools/tool.ts'
import { still } from './still.ts'

/** One half of a call that is made up, about which policies are to be consulted. */
export interface Posed {
  readonly seam: Seam
  readonly half: Half
  /** What is not given is as in a node named `node`. */
  readonly subject?: Partial<Subject>
  /** What would run; at `toolCall.after`, the arguments that ran. `{}` without it. */
  readonly input?: Json
  /** At `after`: what it came to; a value of `null` without it. */
  readonly outcome?: ShownOutcome
  /** Counts from 1. */
  readonly attempt?: number
  readonly maxAttempts?: number
  readonly labels?: readonly string[]
  /** What the policies’ own `runTool` reaches. */
  readonly tools?: readonly Tool[]
}

/** What became of it. */
export interface Judgement {
  /** What the half came to; `proceed` or `pass` where nobody said anything else, or nobody was consulted. */
  readonly action: Action
  /** The policy that decided, or `engine`. */
  readonly by: string
  readonly reason?: string
  readonly code?: string
  /** At `before`: what would run, when it would. */
  readonly input?: Json
  /** At `after`, and of a `replace`: what would be used. */
  readonly value?: Json
  /** The question that a `suspend` puts. */
  readonly ask?: JsonObject
  /** What the engine refused of it: a policy failed, a value does not fit. */
  readonly error?: Error
  /** What people would be told. */
  readonly warnings: readonly string[]
  /** As the decision log would have it; absent where nobody was consulted. */
  readonly record?: DecisionRecord
}

/**
 * Consults policies about one half of one call, by the gate itself and by its rules, without a run around it: for tests of
 * policies. Everything that is no policy is left out.
 */
export async function judge(policies: readonly Policy[], posed: Posed): Promise<Judgement> {
  const { seam, half } = posed
  const said = new Map<string, unknown>()
  const listening = policies.map((policy) => onlyAt(policy, seam, half, said))
  const records: DecisionRecord[] = []
  const left: Left = {}
  const step = node('node', Nothing, async (_s, ctx) => {
    await walk(Task.of(ctx), listening, posed, left)
  })
  const runtime = createRuntime({
    tools: posed.tools,
    platform: still(),
    decisions: { write: (record) => void records.push(record) },
  })
  const { error, warnings } = await runtime.settle(
    graph('judge', Nothing).edge(START, step).edge(step, END).check(),
    {},
    { startedBy: 'judge' },
  )
  await runtime.drain()
  const [record] = records
  const { outcome: action = half === 'before' ? 'proceed' : 'pass', by = 'engine', reason, code } = record ?? {}
  const { ask } = (said.get(by) ?? {}) as { readonly ask?: JsonObject }
  // A verdict that ends the run is no fault.
  const failed = record !== undefined && record.error === undefined ? undefined : (error as Error | undefined)
  return {
    action,
    by,
    reason,
    code,
    ...left,
    ask,
    error: failed,
    warnings: warnings.map(({ message }) => message),
    record,
  }
}

const Nothing = state({ messages: messages() })

/** What is left to run, or to be used. */
interface Left {
  input?: Json
  value?: Json
}

/** The same policy, subscribed to one half only, and what it says is heard. */
function onlyAt(policy: Policy, seam: Seam, half: Half, said: Map<string, unknown>): Policy {
  const hear = (verdict: unknown) => {
    said.set(policy.name, verdict)
    return verdict
  }
  return {
    ...policy,
    subscribes: (ofSeam, ofHalf) => ofSeam === seam && ofHalf === half && policy.subscribes(seam, half),
    consult: (consultation: Consultation) => {
      const verdict = policy.consult(consultation)
      return isThenable(verdict) ? verdict.then(hear) : hear(verdict)
    },
  }
}

/** Sends a call through a gate at which nothing but that half is consulted; it is over when that is. */
async function walk(task: Task, policies: readonly Policy[], posed: Posed, left: Left): Promise<void> {
  const { seam, half, input = {}, outcome = { ok: true, value: null }, attempt = 1, maxAttempts = attempt + 1 } = posed
  for (const label of posed.labels ?? []) task.scope.labels.add(label)
  const subject = { nodeName: 'node', nodeType: 'Node', ...posed.subject }
  const call = new Call(task.scope, subject, own(input), { maxAttempts, maker: task })
  call.attempt = attempt
  const thrown = outcome.ok ? undefined : Object.assign(new Error(outcome.error.message), outcome.error)
  const spec: SeamSpec<Json, Json> = {
    seam: seam === 'nodeError' ? 'node' : seam,
    readInput: (value, { input }, what) =>
      seam === 'modelCall' ? (editRequest(input as unknown as ChatRequest, value, what) as unknown as Json) : value,
    readValue: (value, _call, what) => (seam === 'modelCall' ? (readResponse(value, what) as unknown as Json) : value),
    perform: () => {
      if (half === 'before') left.input = call.input
      if (outcome.ok) return own(outcome.value)
      throw thrown
    },
    // What comes of another attempt is another question.
    retrying: () => task.scope.stop(new Error('a retry was granted')),
  }
  try {
    const value = await compileGate(spec, policies)(call)
    if (half === 'after' || call.substituted !== undefined) left.value = value
  } catch (error) {
    // What was posed as failed and is let stand, by policies or because there are none, is no fault of theirs.
    if (error !== thrown) throw error
  }
}

import { z } from 'zod'
import {
  type Consultation,
  createRuntime,
  END,
  type Graph,
  graph,
  type Half,
  type JsonObject,
  type NodeContext,
  type NodeOptions,
  node,
  type Policy,
  type PolicyOptions,
  policy,
  type RunEvent,
  type RunOptions,
  type RunOutcome,
  type RuntimeOptions,
  type Seam,
  type ShownOutcome,
  START,
  type StateOf,
  type Subject,
  state,
  type Tool,
  tool,
  type UpdateFor,
} from '../src/index.ts'

/** The state of most graphs here: what a step is given, and what it made. */
export const Text = state({ text: z.string().default('given'), made: z.string().default('nothing') })
export type TextState = StateOf<typeof Text>
export type TextGraph = Graph<TextState, UpdateFor<typeof Text>>

type Step = (state: TextState, ctx: NodeContext) => unknown

/** A graph `one` with the single node `step`. */
export function oneNode(run: Step, options: NodeOptions = {}): TextGraph {
  const step = node('step', Text, run as (state: TextState, ctx: NodeContext) => undefined, options)
  return graph('one', Text).edge(START, step).edge(step, END).check()
}

/** What a call came to for the code that made it. After a stop both stay `undefined`: nobody inside learns of it. */
export interface Seen<Value> {
  value?: Value
  error?: unknown
  /** Whether a `finally` around the call was reached. */
  left?: true
}

/** A graph whose one node makes a call with a try, a catch and a finally around it. */
export function trying<Value>(
  call: (ctx: NodeContext, state: TextState) => Promise<Value>,
  options?: NodeOptions,
): { readonly seen: Seen<Value>; readonly graph: TextGraph } {
  const seen: Seen<Value> = {}
  const graph = oneNode(async (state, ctx) => {
    try {
      seen.value = await call(ctx, state)
    } catch (error) {
      seen.error = error
    } finally {
      seen.left = true
    }
  }, options)
  return { seen, graph }
}

type Playing<State, Update> = RuntimeOptions &
  RunOptions & { readonly graph: Graph<State, Update>; readonly input?: Update }

/** Runs a graph on a runtime of its own and says how it ended. */
export function settle<State, Update>({
  graph,
  input,
  signal,
  timeoutMs,
  ...options
}: Playing<State, Update>): Promise<RunOutcome<State>> {
  return createRuntime(options).settle(graph, input, { signal, timeoutMs })
}

/** Runs a graph on a runtime of its own and collects what it publishes. */
export async function eventsOf<State, Update>({
  graph,
  input,
  signal,
  timeoutMs,
  ...options
}: Playing<State, Update>): Promise<readonly RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of createRuntime(options).stream(graph, input, { signal, timeoutMs })) events.push(event)
  return events
}

export const ofType = <T extends RunEvent['type']>(
  events: readonly RunEvent[],
  type: T,
): readonly Extract<RunEvent, { type: T }>[] =>
  events.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type)

/** One consultation as the policy saw it. */
export interface Asked {
  readonly at: string
  readonly subject: Subject
  readonly input?: unknown
  readonly outcome?: ShownOutcome
  readonly attempt: number
  readonly maxAttempts: number
  readonly revisit: boolean
  readonly substituted: string | undefined
}

/** A verdict, something that is none, or a function that answers with either. */
export type Answer = ((shown: Shown, ctx: Consultation) => unknown) | object | string | number | null
export interface Shown {
  readonly subject: Subject
  readonly input: JsonObject
  readonly outcome: ShownOutcome
}

/** A policy with an answer for each half it subscribes to (`{ 'toolCall.before': answer }`), and a note of all it was asked. */
export function says(
  name: string,
  answers: { readonly [At in `${Seam}.${Half}`]?: Answer },
  options: Omit<PolicyOptions, 'name' | 'seams'> = {},
): Policy & { readonly asked: readonly Asked[] } {
  const asked: Asked[] = []
  const seams: Record<string, Record<string, unknown>> = {}
  for (const [at, answer] of Object.entries(answers)) {
    const [seam, half] = at.split('.') as [Seam, Half]
    seams[seam] = {
      ...seams[seam],
      [half]: (shown: Shown, ctx: Consultation) => {
        const { attempt, maxAttempts, revisit, substituted } = ctx
        asked.push({ at, ...shown, attempt, maxAttempts, revisit, substituted })
        return typeof answer === 'function' ? answer(shown, ctx) : answer
      },
    }
  }
  return Object.assign(policy({ ...options, name, seams: seams as PolicyOptions['seams'] }), { asked })
}

/** A tool with one argument `text` that notes what it ran with. */
export function noting(
  run: (args: { readonly text: string }) => unknown = () => 'done',
  name = 'act',
): Tool & { readonly ran: readonly JsonObject[] } {
  const ran: JsonObject[] = []
  const made = tool(name, {
    description: 'Notes what it ran with.',
    input: z.object({ text: z.string() }),
    run: (args) => {
      ran.push(args)
      return run(args)
    },
  })
  return Object.assign(made, { ran })
}

/** Settles when the signal aborts; at once when it already has. */
export const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

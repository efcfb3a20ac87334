import type { JsonObject } from '../json/json.ts'
import { ownObject } from '../json/own.ts'
import type { Graph } from '../run/graph.ts'
import type { OutputOf, Schema } from '../state/schema.ts'
import type { ChildOptions } from '../tools/inside.ts'
import { type Tool, tool } from '../tools/tool.ts'
import { holds } from './agent-tools.ts'
import type { AgentInput } from './create-agent.ts'

export interface AsToolOptions<I extends Schema, State, Update>
  extends Pick<ChildOptions, 'middleware' | 'remember' | 'timeoutMs'> {
  /** The agent's name without it. */
  readonly name?: string
  /** For the model that may call it. */
  readonly description: string
  /** What it is called with; `{ task }`, a text, without it. */
  readonly input?: I
  /** JSON Schema of `input`, where it cannot tell it. */
  readonly parameters?: JsonObject
  /** What the agent is told, made of the arguments; without it `task`, or the arguments as JSON. */
  in?(args: OutputOf<I>): AgentInput<Update>
  /** The result, made of the agent's final state; its output or the text of its answer without it. */
  out?(state: State): unknown
  /** What the agent and its tools get as `ctx.context`, made of what the caller has; the same without it. */
  context?(context: unknown): unknown
}

const Task: Schema<{ readonly task: string }> = {
  '~standard': {
    version: 1,
    vendor: 'sluice',
    validate(value) {
      const { task } = value as { readonly task?: unknown }
      return typeof task === 'string'
        ? { value: { task } }
        : { issues: [{ message: 'expected a text', path: ['task'] }] }
    },
  },
}

const TASK = ownObject(
  {
    type: 'object',
    properties: { task: { type: 'string', description: 'What to do, with all that must be known for it.' } },
    required: ['task'],
    additionalProperties: false,
  },
  'the parameters',
)

/** An agent as a tool; see {@link Agent.asTool}. */
export function asTool<I extends Schema, State, Update>(
  agent: Graph<State, AgentInput<Update>>,
  { inJson, toolNames }: { readonly inJson: boolean; readonly toolNames: readonly string[] },
  options: AsToolOptions<I, State, Update>,
): Tool {
  const { name = agent.plan.name, description, middleware, remember, timeoutMs } = options
  const told =
    options.in ??
    ((args: unknown) => (options.input === undefined ? (args as { task: string }).task : JSON.stringify(args)))
  const answer =
    options.out ??
    ((state: unknown) => {
      const { finalOutput, finalText } = state as { readonly finalOutput: unknown; readonly finalText: string | null }
      return inJson ? finalOutput : (finalText ?? '')
    })
  const made = tool(name, {
    description,
    input: options.input ?? Task,
    parameters: options.input === undefined ? TASK : options.parameters,
    // It only runs the agent, whose own calls are written down one by one: entered anew, it goes on where it was.
    idempotent: true,
    run: async (args, ctx) => {
      const context = options.context?.(ctx.context)
      return answer(await ctx.run(agent, told(args as OutputOf<I>), { middleware, remember, timeoutMs, context }))
    },
  })
  return middleware === 'inherit' ? holds(made, toolNames) : made
}

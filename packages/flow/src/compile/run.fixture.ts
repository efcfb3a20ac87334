import {
  type ChatMessage,
  createRuntime,
  type JsonObject,
  type NodeContext,
  own,
  type Policy,
  policy,
  type RunEvent,
  type RunOutcome,
  type RuntimeOptions,
  type ScriptedModel,
  type ScriptedReply,
  type SeamHandlers,
  type Subject,
  scripted,
  type Tool,
} from '@sluice/core'
import type { PluginType } from '../components/plugin-types.ts'
import { load, pluginTypes } from '../document.fixture.ts'
import { compileFlow, type FlowGraph } from './compile.ts'
import type { FlowParts, Phase, TransformVerdict } from './parts.ts'

type NodeHandler = (
  input: JsonObject,
  settings: JsonObject,
  ctx: NodeContext,
) => { readonly output: JsonObject; readonly branch?: string }
type TransformHandler = (messages: readonly ChatMessage[], phase: Phase) => TransformVerdict

/** A machine of plain functions, and a model for each configuration by its name. */
export interface Machine {
  readonly tools?: Readonly<Record<string, (args: JsonObject) => unknown>>
  /** What the model named `gpt` answers, or each model by its name. */
  readonly model?: readonly ScriptedReply[] | Readonly<Record<string, readonly ScriptedReply[]>>
  readonly nodes?: Readonly<Record<string, NodeHandler & Pick<PluginType, 'inputs' | 'outputs' | 'branches'>>>
  readonly transforms?: Readonly<Record<string, readonly [Phase | 'both', TransformHandler]>>
}

export interface Playing extends Machine, Omit<RuntimeOptions, 'tools'> {
  readonly input?: JsonObject
}

export interface Played extends RunOutcome<JsonObject> {
  /** What every model was asked, in order. */
  readonly requests: ScriptedModel['requests']
  /** What every tool ran with, in order. */
  readonly ran: readonly (readonly [string, JsonObject])[]
}

/** A tool that takes anything. */
export function plainTool(name: string, run: (args: JsonObject) => unknown, description = `Runs ${name}.`): Tool {
  return {
    name,
    description,
    parameters: own({ type: 'object' }) as JsonObject,
    source: 'code',
    idempotent: false,
    readArguments: (args) => args,
    readResult: (value) => own(value ?? null),
    run,
  }
}

function machineOf({ tools = {}, model = [], nodes = {}, transforms = {} }: Machine) {
  const requests: ScriptedModel['requests'][number][] = []
  const ran: (readonly [string, JsonObject])[] = []
  const models = new Map(
    Object.entries((Array.isArray(model) ? { gpt: model } : model) as Record<string, readonly ScriptedReply[]>).map(
      ([name, replies]) => [name, noted(scripted(replies, { model: name }), requests)],
    ),
  )
  const table = new Map(
    Object.entries(tools).map(([name, run]) => [
      name,
      plainTool(name, (args) => {
        ran.push([name, args])
        return run(args)
      }),
    ]),
  )
  const parts: FlowParts = {
    tool: (name) => table.get(name),
    toolNames: () => [...table.keys()],
    model: ({ name }) => models.get(name) as ScriptedModel,
    execute: async ({ type, settings }, input, ctx) => (nodes[type] as NodeHandler)(input, settings, ctx),
    apply: async ({ type }, phase, messages) => (transforms[type] as (typeof transforms)[string])[1](messages, phase),
    phases: ({ type }) => {
      const [phase] = transforms[type] as (typeof transforms)[string]
      return phase === 'both' ? ['pre', 'post'] : [phase]
    },
  }
  const provided = { plugin: 'test', version: '1.0.0' }
  const types = pluginTypes({
    ...Object.fromEntries(
      Object.entries(nodes).map(([type, { inputs, outputs, branches }]) => [
        type,
        { kind: 'node', ...provided, inputs, outputs, branches } as PluginType,
      ]),
    ),
    ...Object.fromEntries(
      Object.keys(transforms).map((type) => [type, { kind: 'transform', ...provided } as PluginType]),
    ),
  })
  return { parts, types, requests, ran }
}

function noted(model: ScriptedModel, requests: ScriptedModel['requests'][number][]): ScriptedModel {
  return {
    ...model,
    chat: (request, options) => {
      requests.push(request)
      return model.chat(request, options)
    },
    stream: (request, options) => {
      requests.push(request)
      return (model.stream as NonNullable<ScriptedModel['stream']>)(request, options)
    },
  }
}

/** Loads and compiles a document. */
export async function compile(document: unknown, machine: Machine = {}): Promise<FlowGraph> {
  const { parts, types } = machineOf(machine)
  return compileFlow(await load(document, { plugins: types }), parts)
}

/** Loads, compiles and runs a document, and says how that ended. */
export async function play(document: unknown, { input = {}, ...playing }: Playing = {}): Promise<Played> {
  const { parts, types, requests, ran } = machineOf(playing)
  const graph = await compileFlow(await load(document, { plugins: types }), parts)
  const { policies, limits } = playing
  return { ...(await createRuntime({ policies, limits }).settle(graph, input)), requests, ran }
}

/** The outputs of a run that must go well. */
export async function outputsOf(document: unknown, playing?: Playing): Promise<JsonObject> {
  const { state, error } = await play(document, playing)
  if (error !== undefined) throw error
  return state
}

/** What the error of a run that must fail says. */
export async function failureOf(document: unknown, playing?: Playing): Promise<string> {
  const { error, state } = await play(document, playing)
  if (error instanceof Error) return error.message
  throw new Error(`it did not fail, and gave ${JSON.stringify(state)}`)
}

/** What a run publishes. */
export async function eventsOf(document: unknown, { input = {}, ...playing }: Playing = {}): Promise<RunEvent[]> {
  const { parts, types } = machineOf(playing)
  const graph = await compileFlow(await load(document, { plugins: types }), parts)
  const { policies, limits } = playing
  const events: RunEvent[] = []
  for await (const event of createRuntime({ policies, limits }).stream(graph, input)) events.push(event)
  return events
}

type Answer = { readonly action: string; readonly [member: string]: unknown }

/** One consultation, as the policy saw it. */
export interface Seen {
  readonly at: string
  readonly subject: Subject
  readonly input?: unknown
  readonly outcome?: unknown
}

/** A policy that notes all it is shown at these halves, and answers as said for a node: `{ 'node.before pay': verdict }`. */
export function watching(
  halves: readonly string[],
  answers: Readonly<Record<string, Answer>> = {},
): Policy & { readonly seen: readonly Seen[] } {
  const seen: Seen[] = []
  const seams: Record<string, Record<string, unknown>> = {}
  for (const at of halves) {
    const [seam = '', half = ''] = at.split('.')
    const consult = (shown: Omit<Seen, 'at'>) => {
      seen.push({ at, ...shown })
      const { nodeName, graphName } = shown.subject as { nodeName?: string; graphName?: string }
      return answers[`${at} ${nodeName ?? graphName}`] ?? { action: half === 'before' ? 'proceed' : 'pass' }
    }
    seams[seam] = { ...seams[seam], [half]: consult }
  }
  return Object.assign(policy({ name: 'Watch', seams: seams as SeamHandlers }), { seen })
}

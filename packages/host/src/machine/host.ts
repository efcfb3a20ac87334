import { readFile } from 'node:fs/promises'
import {
  type ChatModel,
  createRuntime,
  type DecisionRecord,
  type DecisionSink,
  isObject,
  type JsonObject,
  type Limits,
  messageOf,
  own,
  pluginCalls,
  type Runtime,
  replayThread,
  SluiceError,
  type Status,
  type Store,
  type ThreadRecord,
  type Tool,
} from '@sluice/core'
import {
  type CheckedDocument,
  type CheckedFlow,
  compileFlow,
  type FlowGraph,
  type FlowParts,
  type LoadOptions,
  loadDocument,
  loadFlow,
  type Phase,
  type PluginComponent,
} from '@sluice/flow'
import type { Brought } from '../brought/workshop.ts'
import type { DecisionLogOptions } from '../decisions/decision-log.ts'
import { configuredModel } from '../models/configured.ts'
import type { Egress } from '../models/egress/egress.ts'
import { settingsModel } from '../models/settings.ts'
import type { Encoder } from '../plugin/encoder.ts'
import type { Checked } from '../plugin/self-test.ts'
import { parsePluginConfig } from '../plugins/config-arguments.ts'
import { NO_PLUGINS, type Plugins } from '../plugins/plugins.ts'
import type { Explanation } from '../policies/explain.ts'
import type { LoadedPolicies } from '../policies/load.ts'
import { withPluginTools } from '../tools/merge.ts'
import { checkAnswer } from './answers.ts'
import { pluginEnvironment } from './environment.ts'

export interface HostOptions {
  /** Manifests, and modules that run in this process, in the order their policies are consulted. */
  readonly plugins?: readonly string[]
  /** Whether plugins that say their tools only when they are asked may be started and asked. */
  readonly discoverTools?: boolean
  /** A policy file. What the options beside it install comes after it, and the settings they give win. */
  readonly policies?: string
  /** `Type=<json>` or `Type=@file`, once for each type. */
  readonly pluginConfig?: readonly string[]
  /** What these plugins may see of the environment, `NAME` or `NAME=value`; nothing where nothing is named. */
  readonly pluginEnv?: readonly string[]
  /** What takes a record of each half that policies are consulted about: a file, or whoever opened it closes it. */
  readonly decisions?: DecisionLogOptions | DecisionSink
  /** A folder whose executable files are tools. */
  readonly toolsDir?: string
  /** Private addresses that models of documents from requests may be asked at, `host` or `host:port`. */
  readonly allowNet?: readonly string[]
  readonly limits?: Partial<Limits>
  /** Where threads are kept; without it, in this process's memory. Whoever opened it closes it. */
  readonly store?: Store
  /** Told what is odd and stops nothing. */
  readonly onWarning?: (message: string) => void
  /** Given what plugins and tools write for people. */
  readonly onStderr?: (plugin: string, text: string) => void
  /** This process's own environment, for keys of models and for the tools. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** URL of the module that gives plugin programs their global `serve`, where the installed one cannot be found. */
  readonly runtime?: string
}

/**
 * The machine under a run: plugins, tools, models and limits. Everything is checked here, and no plugin is started before it is
 * first asked.
 *
 * @throws SluiceError for whatever is wrong with a flag, a manifest or a setting. Call {@link Host.close} when all runs are over.
 */
export async function openHost(options: HostOptions = {}): Promise<Host> {
  const { env = process.env } = options
  const { plugins, policies } = await installedBy(options, env)
  try {
    const { limits, store, onWarning = (message: string) => process.emitWarning(message) } = options
    const egress = options.allowNet === undefined ? undefined : await egressTo(options.allowNet)
    const programs = options.toolsDir === undefined ? [] : await programsOf(options.toolsDir, env)
    const tools = withPluginTools(programs, plugins)
    const log = await openLog(options.decisions, onWarning)
    const decisions = log && (await namingRevision(log, policies, options.policies))
    const runtime = createRuntime({ policies, tools, limits, store, checkJson: checkAnswer, checkApprovers, decisions })
    const close = async () => {
      await runtime.drain()
      await plugins.close()
      if (log !== options.decisions) await log?.close?.()
    }
    return new Host({ plugins, tools, env, egress, runtime, policyFile: options.policies, close })
  } catch (error) {
    await plugins.close()
    throw error
  }
}

/** Types by which policies know nodes in code. The others of these are Agent Spec's as well, and no plugin may have those. */
const NODES_IN_CODE: ReadonlySet<string> = new Set(['ModelNode', 'GraphNode'])

type Environment = Readonly<Record<string, string | undefined>>

/** What runs programs is loaded when there are some: a flow without should not wait for it. */
async function installedBy(
  { plugins: paths = [], policies: file, pluginConfig = [], pluginEnv = [], ...hosting }: HostOptions,
  env: Environment,
): Promise<LoadedPolicies> {
  const { discoverTools, runtime, onWarning, onStderr } = hosting
  const config = parsePluginConfig(pluginConfig)
  const given = pluginEnvironment(pluginEnv, env)
  const options = {
    model: (llmConfig: JsonObject) => settingsModel(llmConfig, env),
    discoverTools,
    runtime,
    onWarning,
    onStderr,
  }
  if (file !== undefined) {
    const { loadPolicies } = await import('../policies/load.ts')
    return loadPolicies(file, { plugins: paths, config, env: given }, { ...options, environment: env })
  }
  if (paths.length === 0 && pluginConfig.length === 0) return { plugins: NO_PLUGINS, policies: [] }
  const { loadPlugins } = await import('../plugins/load.ts')
  const installed = ({ file: manifest }: { readonly file: string }) => {
    return { env: given, rules: { origin: `--plugin ${manifest}` } }
  }
  const plugins = await loadPlugins(paths, { ...options, config, installed })
  return { plugins, policies: plugins.policies }
}

/** What reads expressions is loaded with the first question that has one. */
async function checkApprovers(text: string): Promise<void> {
  const { approversOf } = await import('./approvers.ts')
  approversOf(text)
}

/** What takes decisions, as the option names it; whoever opens a file here closes it. It is loaded when there is to be one. */
export async function openLog(
  decisions: HostOptions['decisions'],
  onWarning: (message: string) => void = (message) => process.emitWarning(message),
): Promise<(DecisionSink & { close?(): Promise<void> }) | undefined> {
  if (decisions === undefined || 'write' in decisions) return decisions
  const { decisionLog } = await import('../decisions/decision-log.ts')
  return decisionLog({ onWarning, ...decisions })
}

/** What sends requests is loaded when there is somebody to guard against. */
async function egressTo(allowNet?: readonly string[]): Promise<Egress> {
  const { Egress } = await import('../models/egress/egress.ts')
  return new Egress(allowNet)
}

/** What makes digests is loaded with the log that they stand in. */
async function namingRevision(log: DecisionSink, policies: LoadedPolicies['policies'], file: string | undefined) {
  const { withRevision } = await import('../decisions/revision.ts')
  return withRevision(log, policies, file)
}

async function programsOf(toolsDir: string, env: Environment): Promise<readonly Tool[]> {
  const { loadToolPrograms } = await import('../tools/folder.ts')
  return loadToolPrograms(toolsDir, { env })
}

/** How a thread went when it was played again. */
interface Replayed {
  /** What policies decided, in order. */
  readonly decisions: readonly DecisionRecord[]
  /** How each turn ended. */
  readonly statuses: readonly Status[]
  /** Questions that nobody had answered in the record; nothing after them was played. */
  readonly waits?: readonly string[]
}

/** A flow, ready for recorded threads of it to be played again. */
export interface LoadedReplay {
  /** The name under which its threads are recorded. */
  readonly graph: string
  /**
   * @param records as {@link Runtime.history} says them.
   * @throws SluiceError `REPLAY_TRIMMED`; and, as what the run comes to, `REPLAY_UNRECORDED` for a node that a plugin serves, of
   *   which nothing is recorded.
   */
  play(records: readonly ThreadRecord[]): Promise<Replayed>
}

/** A flow, ready to run on the runtime of its host. */
export interface LoadedFlow {
  readonly flow: CheckedFlow
  readonly graph: FlowGraph
  /** Whether it has parts that plugins serve, so that it runs only while the host is open. */
  readonly callsPlugins: boolean
}

/** How a document is read that does not come from a file of this machine. */
export interface DocumentOptions extends Pick<LoadOptions, 'file' | 'format'> {
  /**
   * Whether it came with a request. Such a document may name no variable of this machine, its models are asked at public addresses
   * and those of {@link HostOptions.allowNet} only, and with its own key where it has its own url.
   */
  readonly submitted?: boolean
  /** Code that came with it, which it may use beside what is installed. Whoever brought it closes it after the last run. */
  readonly brought?: Brought
}

interface HostParts {
  readonly plugins: Plugins
  readonly tools: readonly Tool[]
  readonly env: Environment
  readonly egress: Egress | undefined
  readonly runtime: Runtime
  readonly policyFile: string | undefined
  close(): Promise<void>
}

export class Host {
  readonly runtime: Runtime
  readonly #plugins: Plugins
  readonly #tools: ReadonlyMap<string, Tool>
  readonly #env: Environment
  /** The way out of documents that came with requests. */
  #egress: Egress | undefined
  readonly #policyFile: string | undefined
  /** Asks every plugin to end, ends those that do not, and closes the decision log. */
  readonly close: () => Promise<void>

  constructor({ plugins, tools, env, egress, runtime, policyFile, close }: HostParts) {
    this.runtime = runtime
    this.#plugins = plugins
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]))
    this.#env = env
    this.#egress = egress
    this.#policyFile = policyFile
    this.close = close
  }

  /** Reads, checks and compiles a flow. @throws FlowError with every fault of the document. */
  async loadFlow(file: string): Promise<LoadedFlow> {
    return this.compile(await readDocument(file), { file })
  }

  /**
   * Checks and compiles a flow that is at hand as text.
   *
   * @throws FlowError with every fault of the document; of one that came with a request, `FLOW_ENVIRONMENT` and `MODEL_ADDRESS`;
   *   `CODE_TAKEN` for code that came with it under the name of something installed, `CODE_INVALID` for what it may not ask for here.
   */
  async compile(document: string, options: DocumentOptions = {}): Promise<LoadedFlow> {
    const { submitted = false, brought, ...reading } = options
    if (brought !== undefined) this.#refuseBrought(brought)
    let callsPlugins = false
    const { types } = this.#plugins
    const get = (type: string) => {
      const found = types.get(type)
      callsPlugins ||= found !== undefined
      return found ?? brought?.plugins.types.get(type)
    }
    const names = () => [...types.types(), ...(brought?.plugins.types.types() ?? [])]
    const flow = await loadFlow(document, { ...reading, plugins: { get, types: names } })
    const parts = this.#parts({ egress: submitted ? await this.#submitted(flow) : undefined, brought })
    const tool = (name: string) => {
      const found = parts.tool(name)
      callsPlugins ||= found?.source.startsWith('plugin:') ?? false
      return found
    }
    const graph = await compileFlow(flow, { ...parts, tool })
    return { flow, graph, callsPlugins }
  }

  /** Reads and checks a document of any kind. @throws FlowError with every fault of the document. */
  async loadDocument(file: string): Promise<CheckedDocument> {
    return loadDocument(await readDocument(file), { file, plugins: this.#plugins.types })
  }

  /** The tools there are, by name. */
  get tools(): readonly Tool[] {
    return [...this.#tools.values()]
  }

  /** Who is consulted where and in which order; with a flow, about what, and what nobody guards. Nothing is started. */
  async explain(file?: string): Promise<Explanation> {
    const { explainPolicies } = await import('../policies/explain.ts')
    const plugins = this.#plugins.types
    const flow = file === undefined ? undefined : await loadFlow(await readDocument(file), { file, plugins })
    return explainPolicies({
      policies: this.runtime.gates.policies,
      file: this.#policyFile,
      flow,
      sourceOf: (tool) => this.#tools.get(tool)?.source,
      tools: [...this.#tools.keys()],
    })
  }

  /** The protocols that {@link encoder} knows: `sluice`, which is the events themselves, and those of plugins. */
  get protocols(): readonly string[] {
    return this.#plugins.protocols
  }

  /** The encoder that renders this protocol. @throws PluginError `PLUGIN_PROTOCOL_UNKNOWN` with those there are. */
  encoder(protocol: string): Encoder {
    return this.#plugins.encoder(protocol)
  }

  /** Policies that answer no more and let nothing pass without them: what they guard fails until a reload. */
  get lostPolicies(): readonly string[] {
    const { lost } = this.#plugins
    return this.runtime.gates.policies
      .filter(
        ({ plugin, mode = 'enforce', onFailure }) =>
          mode === 'enforce' && onFailure !== 'pass' && lost.includes(plugin),
      )
      .map(({ name }) => name)
  }

  /** Starts every plugin, and lets each of its components test itself; no handler is consulted. */
  check(): Promise<readonly Checked[]> {
    return this.#plugins.check()
  }

  /**
   * Reads a flow whose recorded threads are to be played again, past the policies of this host: nothing is asked of a model, a
   * tool or a person.
   *
   * @throws FlowError with every fault of the document.
   */
  async loadReplay(file: string): Promise<LoadedReplay> {
    const flow = await loadFlow(await readDocument(file), { file, plugins: this.#plugins.types })
    const graph = await compileFlow(flow, { ...this.#parts(), execute: unplayed, apply: unplayed })
    const { limits, checkJson, gates } = this.runtime
    const tools = [...this.#tools.values()]
    const play = async (records: readonly ThreadRecord[]): Promise<Replayed> => {
      const decisions: DecisionRecord[] = []
      const write = (record: DecisionRecord) => void decisions.push(record)
      const options = { policies: gates.policies, tools, limits, checkJson, decisions: { write } }
      const { turns, waits } = await replayThread(graph, records, options)
      return { decisions, statuses: turns.map(({ status }) => status), ...(waits === undefined ? {} : { waits }) }
    }
    return { graph: graph.plan.name, play }
  }

  /** The way out for a document that came with a request. @throws SluiceError `FLOW_ENVIRONMENT`. */
  async #submitted(flow: CheckedFlow): Promise<Egress> {
    refuseEnvironment(flow)
    this.#egress ??= await egressTo()
    return this.#egress
  }

  #parts({ egress, brought }: Submission = {}): FlowParts {
    const tools = new Map([...(brought?.tools ?? []).map((tool) => [tool.name, tool] as const), ...this.#tools])
    const toolOf = (name: string) => tools.get(name)
    const pluginsOf = (type: string) => this.#pluginsOf(type, brought)
    const callsOf = ({ type, settings }: PluginComponent, ctx: Parameters<typeof pluginCalls>[0]) =>
      pluginCalls(ctx, type, this.#modelIn(settings, { egress, brought }), toolOf)
    return {
      tool: toolOf,
      toolNames: () => [...tools.keys()],
      model: (config) =>
        config.provider === undefined
          ? configuredModel(config, this.#env, egress)
          : pluginsOf(config.provider.type).model(config.provider.type, asWritten(config.provider)),
      execute: (component, input, ctx) =>
        pluginsOf(component.type).execute(component.type, asWritten(component), input, callsOf(component, ctx)),
      apply: (component, phase, messages, ctx) =>
        pluginsOf(component.type).apply(
          component.type,
          { component: asWritten(component), phase, messages },
          callsOf(component, ctx),
        ),
      phases: ({ type }) => phasesOf(pluginsOf(type).types.get(type)?.phase),
    }
  }

  /** Who provides a component type: what is installed, before what came with the document. */
  #pluginsOf(type: string, brought: Brought | undefined): Plugins {
    const isBrought = this.#plugins.types.get(type) === undefined && brought?.plugins.types.get(type) !== undefined
    return isBrought ? brought.plugins : this.#plugins
  }

  /** The model that a component names for its own calls: one of a plugin's provider, or one that is configured. */
  #modelIn({ llm_config: config }: JsonObject, { egress, brought }: Submission): ChatModel | undefined {
    if (!isObject(config)) return undefined
    const written = config as JsonObject
    const { component_type: type } = written
    if (typeof type !== 'string') return settingsModel(written, this.#env, egress)
    const plugins = this.#pluginsOf(type, brought)
    return plugins.types.get(type)?.kind === 'provider'
      ? plugins.model(type, written)
      : settingsModel(written, this.#env, egress)
  }

  /** Nothing that is installed gives way, and nobody spends the key of whoever runs this machine from within code of their own. */
  #refuseBrought({ plugins, tools }: Brought): void {
    const taken = [
      ...tools.filter(({ name }) => this.#tools.has(name)).map(({ name }) => `the tool "${name}"`),
      ...plugins.names.filter((name) => this.#plugins.names.includes(name)).map((name) => `the plugin "${name}"`),
      ...plugins.types
        .types()
        .filter((type) => NODES_IN_CODE.has(type) || this.#plugins.types.get(type) !== undefined)
        .map((type) => `the component type "${type}"`),
    ]
    if (taken.length > 0)
      throw new SluiceError('CODE_TAKEN', `here is already ${taken.join(', ')}; take another name for what you bring.`)
    if (plugins.capabilities.has('callModel') && this.#env.OPENAI_API_KEY)
      throw new SluiceError(
        'CODE_INVALID',
        'the code of this request asks for the capability "callModel", which is not granted where models have a key of the operator’s. Leave it out, and let the document ask the model.',
      )
  }
}

/** What holds for a document that came with a request. */
interface Submission {
  readonly egress?: Egress | undefined
  readonly brought?: Brought | undefined
}

/** Whoever hands in a document is not who runs this machine: whether a variable exists here is not told either. */
function refuseEnvironment({ environment }: CheckedFlow): void {
  const [first] = environment
  if (first === undefined) return
  throw new SluiceError(
    'FLOW_ENVIRONMENT',
    `a flow that comes with a request may not name variables of this machine, and this one names $${first.name}.`,
  )
}

async function unplayed({ type }: PluginComponent): Promise<never> {
  const why = `nobody knows what ${type} would have come to: of what plugins' nodes and transforms do, nothing is recorded.`
  throw new SluiceError('REPLAY_UNRECORDED', why)
}

/** A component as its plugin is shown it: what the document writes about it, with references replaced. */
function asWritten({ type, id, name, description, settings }: PluginComponent): JsonObject {
  return own({ ...settings, component_type: type, id, name, description }) as JsonObject
}

const phasesOf = (phase: 'pre' | 'post' | 'both' = 'pre'): readonly Phase[] =>
  phase === 'both' ? ['pre', 'post'] : [phase]

async function readDocument(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const { code } = error as { code?: string }
    const why = code === 'ENOENT' ? 'there is no such file' : code === 'EISDIR' ? 'it is a folder' : messageOf(error)
    throw new SluiceError('FLOW_FILE', `the flow ${file} cannot be read: ${why}.`, { file })
  }
}

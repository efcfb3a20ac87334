import {
  type AfterVerdict,
  type BeforeVerdict,
  type ChatResponse,
  type Consultation,
  type Json,
  type JsonObject,
  type Policy,
  policy,
  type Remarks,
  SluiceError,
} from '@sluice/core'
import { PROFILES } from './compose.ts'
import type { Shown } from './context.ts'
import * as show from './context.ts'
import { type Emitted, Emitter, type Open } from './emission.ts'
import type { AgentHooksOptions } from './options.ts'
import { SESSION, type Session, Sessions } from './session.ts'
import { isOfHost, type Verdict } from './verdict.ts'

const HALF_MS = 15_000
const [MAX_WARNINGS, MAX_WARNING] = [16, 1024]

type Ctx = Consultation<Session>

/**
 * Interceptors of AGENT-HOOKS 0.1 as one policy. What the host itself finds wrong, a failing interceptor above all, ends the
 * run.
 *
 * @throws SluiceError `AGENT_HOOKS_CONFIG` for a profile that there is not, or a provider that takes a name that is not its own.
 */
export function agentHooks(options: AgentHooksOptions): Policy {
  checkConfig(options)
  const { name = 'AgentHooks', rules } = options
  const bridge = new Bridge(options)
  return policy<Session>({
    ...rules,
    name,
    timeoutMs: HALF_MS,
    kept: SESSION,
    seams: {
      run: {
        before: ({ subject, input }, ctx) => bridge.beforeRun(isInside(subject), input, ctx),
        after: ({ subject, outcome }, ctx) =>
          subject.nested === true || !outcome.ok ? { action: 'pass' } : bridge.afterRun(outcome.value, ctx),
      },
      modelCall: {
        before: async ({ subject: { nodeName = '' }, input }, ctx) => {
          new Sessions(ctx.kept).asksModel(nodeName, input.model)
          const emitted = await bridge.emit(ctx, show.preModelCall(input.model, input.messages))
          return bridge.before(emitted, (messages) => ({ messages: messages as never }))
        },
        after: async ({ subject: { nodeName = '' }, outcome }, ctx) => {
          if (!outcome.ok) return { action: 'pass' }
          const response = outcome.value
          const model = new Sessions(ctx.kept).modelOf(nodeName)
          const emitted = await bridge.emit(ctx, show.postModelCall(model, response))
          return bridge.after(emitted, (target) => show.responseFrom(target, response) as unknown as ChatResponse)
        },
      },
      toolCall: {
        before: async ({ subject: { toolCallId = '', toolName = '' }, input }, ctx) => {
          const emitted = await bridge.emit(ctx, show.preToolCall(toolCallId, toolName, input))
          return bridge.before(emitted, (target) => target as JsonObject)
        },
        after: async ({ subject: { toolCallId = '', toolName = '' }, input, outcome }, ctx) => {
          const value = outcome.ok ? outcome.value : outcome.error.message
          const shown = show.postToolCall(toolCallId, toolName, input, value, !outcome.ok)
          return bridge.afterTool(await bridge.emit(ctx, shown), outcome.ok)
        },
      },
    },
  })
}

/** Whether a run has no input of its own that somebody outside gave. */
const isInside = ({ nested, resuming }: { readonly nested?: boolean; readonly resuming?: boolean }): boolean =>
  nested === true || resuming === true

/** A verdict that lets a step be. */
const GOES_ON = { before: { action: 'proceed' }, after: { action: 'pass' } } as const

/** Between the gate and the interceptors: opens and closes sessions, and says their verdicts in ours. */
class Bridge {
  readonly #emitter: Emitter
  readonly #tools: readonly string[]
  readonly #evaluateOnly: boolean

  constructor(options: AgentHooksOptions) {
    this.#emitter = new Emitter(options)
    this.#tools = options.tools ?? []
    this.#evaluateOnly = options.evaluateOnly === true
  }

  /** One emission, after that of the session's start where it is the first. */
  async emit(ctx: Ctx, shown: Shown): Promise<Emitted> {
    const sessions = new Sessions(ctx.kept)
    if (sessions.phase === 'none') sessions.begin()
    if (sessions.phase === 'begun') {
      const started = await this.#emitter.emit(ctx, show.startup(this.#tools))
      if (this.#isRefused(started)) return started
      sessions.open()
    }
    return this.#emitter.emit(ctx, shown)
  }

  async beforeRun(inside: boolean, input: JsonObject, ctx: Ctx): Promise<BeforeVerdict<'run'>> {
    if (inside) return GOES_ON.before
    return this.before(await this.emit(ctx, show.input(input)), (target) => show.inputFrom(target, input))
  }

  /** The output, where there is one, and then the end, whose verdict is only recorded. */
  async afterRun(value: Json, ctx: Ctx): Promise<AfterVerdict<'run'>> {
    const sessions = new Sessions(ctx.kept)
    if (sessions.phase === 'none') return GOES_ON.after
    const { status, outputs } = value as { readonly status: string; readonly outputs?: Json }
    const emitted = outputs === undefined ? undefined : await this.emit(ctx, show.output(outputs))
    const isBlocked = emitted !== undefined && this.#isRefused(emitted)
    await this.#emitter.emit(ctx, show.shutdown(isBlocked ? 'failed' : status))
    sessions.close()
    if (emitted === undefined) return GOES_ON.after
    return this.after(emitted, (target) => show.outputFrom(target, outputs as Json))
  }

  /** What an emission comes to before a step. */
  before<Input>(
    emitted: Emitted,
    inputOf: (target: Json) => Input,
  ):
    | (Remarks & { action: 'proceed' })
    | (Remarks & { action: 'modify'; input: Input })
    | (Remarks & { action: 'reject'; reason: string })
    | (Remarks & { action: 'suspend'; ask: JsonObject }) {
    if ('open' in emitted) return { action: 'suspend', ask: askOf(emitted.open) }
    const { verdict, target } = emitted.combined
    const remarks = remarksOf(verdict)
    if (this.#isRefused(emitted)) return { action: 'reject', reason: reasonOf(verdict), ...remarks }
    if (!this.#applies(verdict)) return { ...GOES_ON.before, ...remarks }
    return { action: 'modify', input: inputOf(target), ...remarks }
  }

  /** What an emission comes to after a step that may be failed. */
  after<Value>(
    emitted: Emitted,
    valueFor: (target: Json) => Value,
  ):
    | (Remarks & { action: 'pass' })
    | (Remarks & { action: 'replace'; value: Value })
    | (Remarks & { action: 'fail'; reason: string }) {
    const { verdict, target } = combinedOf(emitted)
    const remarks = remarksOf(verdict)
    if (this.#isRefused(emitted)) return { action: 'fail', reason: reasonOf(verdict), ...remarks }
    if (!this.#applies(verdict)) return { ...GOES_ON.after, ...remarks }
    return { action: 'replace', value: valueFor(target), ...remarks }
  }

  /** A result is withheld, and the agent goes on. A failure that was rewritten stays one. */
  afterTool(emitted: Emitted, isResult: boolean): AfterVerdict<'toolCall'> {
    const { verdict, target } = combinedOf(emitted)
    const remarks = remarksOf(verdict)
    if (this.#isRefused(emitted)) return { action: 'reject', reason: reasonOf(verdict), ...remarks }
    if (!this.#applies(verdict)) return { ...GOES_ON.after, ...remarks }
    if (isResult) return { action: 'replace', value: target, ...remarks }
    return { action: 'reject', reason: typeof target === 'string' ? target : JSON.stringify(target), ...remarks }
  }

  #applies({ decision }: Verdict): boolean {
    return decision === 'transform' && !this.#evaluateOnly
  }

  #isRefused(emitted: Emitted): boolean {
    return 'open' in emitted || (emitted.combined.verdict.decision === 'deny' && !this.#evaluateOnly)
  }
}

const combinedOf = (emitted: Emitted) => {
  if ('open' in emitted) throw new Error('nobody is asked after a step')
  return emitted.combined
}

/**
 * The reason goes to the model, or into the error of the run.
 *
 * @throws SluiceError `AGENT_HOOKS_DENIED` where the denial is the host's own: that ends the run.
 */
function reasonOf(verdict: Verdict): string {
  const { reason, message } = verdict
  const text = [reason, message].filter((part) => part !== undefined && part !== '').join(': ') || 'denied'
  if (isOfHost(verdict)) throw new SluiceError('AGENT_HOOKS_DENIED', `the host denied the step: ${text}.`)
  return text
}

function remarksOf({ reason, warnings = [], result_labels = [] }: Verdict): Remarks {
  const texts = warnings.map(({ reason, message }) => [reason, message].filter(Boolean).join(': '))
  return {
    ...(reason !== undefined && reason !== '' && { code: reason.slice(0, MAX_WARNING) }),
    ...(texts.length > 0 && { warnings: texts.slice(0, MAX_WARNINGS).map((text) => text.slice(0, MAX_WARNING)) }),
    ...(result_labels.length > 0 && { labels: result_labels }),
  }
}

function askOf({ request, question }: Open): JsonObject {
  const { context_identity, verdict } = request
  const answer = {
    outcome: 'approve',
    context_identity,
    verdict: { decision: 'allow' },
    ...(question > 1 && { question }),
  }
  return {
    question: `May this be done although it was denied (${verdict.reason ?? 'without a reason'})?`,
    request: request as unknown as Json,
    approve: answer,
    reject: { ...answer, outcome: 'reject', verdict: { decision: 'deny', reason: 'rejected' } },
  }
}

function checkConfig({ composition, identityProvider }: AgentHooksOptions): void {
  const refuse = (why: string) => new SluiceError('AGENT_HOOKS_CONFIG', `agent hooks: ${why}.`)
  if (composition !== undefined && !PROFILES.includes(composition.profile))
    throw refuse(`"${composition.profile}" is no profile; profiles are: ${PROFILES.join(', ')}`)
  if (typeof identityProvider === 'object' && identityProvider !== null) {
    const { name } = identityProvider
    if (!/^[a-z][a-z0-9_-]*$/.test(name) || name.startsWith('jcs'))
      throw refuse(
        `a provider of your own has a name of small letters that does not begin with "jcs"; "${name}" is none`,
      )
  }
}

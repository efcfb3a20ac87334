import { createHash, randomUUID } from 'node:crypto'
import { devNull } from 'node:os'
import {
  type AfterVerdict,
  type BeforeVerdict,
  type Consultation,
  canonical,
  equal,
  type Json,
  type JsonObject,
  type Policy,
  type PolicyOptions,
  policy,
  type Remarks,
  type ShownOutcome,
  SluiceError,
  type Subject,
} from '@sluice/core'
import type { Program } from '../../child/child.ts'
import { runOnce } from '../../child/run-once.ts'
import { DECISIONS, type Decision, readOnce, type Said } from './answer.ts'
import {
  EVENTS,
  hasMessages,
  postToolUse,
  preToolUse,
  sessionEnd,
  sessionStart,
  type Told,
  userPromptSubmit,
} from './events.ts'
import { type CommandHook, type HooksByEvent, readHooks } from './settings.ts'

export interface CommandHooksOptions
  extends Omit<PolicyOptions, 'name' | 'seams' | 'component' | 'stream' | 'kept' | 'model'> {
  /** As the settings of a coding agent have them: `{ PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command }] }] }`. */
  readonly hooks: unknown
  /** `CommandHooks` without it. */
  readonly name?: string
  /** Where the commands run, and their `CLAUDE_PROJECT_DIR`; this process's own folder without it. */
  readonly cwd?: string
  /** Their environment, besides `CLAUDE_PROJECT_DIR`; nothing without it. */
  readonly env?: Readonly<Record<string, string>>
}

/** Milliseconds for all hooks of an event together: what a whole half has. */
const TIMEOUT_MS = 15_000
const MAX_STDOUT_BYTES = 1024 * 1024
const [MAX_WARNINGS, MAX_WARNING] = [16, 1024]

/**
 * Command hooks in the shape of Claude Code, as one policy: a JSON object on stdin, a JSON object or nothing on stdout, exit
 * code 2 is a "no". The hooks of an event are asked in order, each on what the ones before it left; deny ends that at once,
 * and of the rest defer counts before ask before allow.
 *
 * @throws SluiceError `COMMAND_HOOK_SETTINGS` for settings under which a hook would not take effect.
 */
export function commandHooks({ hooks: settings, name = 'CommandHooks', ...rest }: CommandHooksOptions): Policy {
  const { cwd = process.cwd(), env = {}, ...options } = rest
  const asked = new Hooks(readHooks(settings), cwd, { CLAUDE_PROJECT_DIR: cwd, ...env })
  const on = (...events: readonly (keyof typeof EVENTS)[]) => events.some((event) => asked.hooks[event] !== undefined)
  return policy({
    timeoutMs: TIMEOUT_MS,
    ...options,
    name,
    seams: {
      ...(on('SessionStart', 'UserPromptSubmit', 'SessionEnd') && {
        run: {
          ...(on('SessionStart', 'UserPromptSubmit') && {
            before: ({ subject, input }, ctx) => beforeRun(asked, subject, input, ctx),
          }),
          ...(on('SessionEnd') && { after: ({ subject }, ctx) => afterRun(asked, subject, ctx) }),
        },
      }),
      ...(on('PreToolUse', 'PostToolUse', 'PostToolUseFailure') && {
        toolCall: {
          ...(on('PreToolUse') && { before: ({ subject, input }, ctx) => beforeTool(asked, subject, input, ctx) }),
          ...(on('PostToolUse', 'PostToolUseFailure') && {
            after: ({ subject, input, outcome }, ctx) => afterTool(asked, subject, input, outcome, ctx),
          }),
        },
      }),
    },
  })
}

async function beforeTool(
  asked: Hooks,
  subject: Subject,
  input: JsonObject,
  ctx: Consultation,
): Promise<BeforeVerdict<'toolCall'>> {
  if (ctx.answered === false) return { action: 'reject', reason: 'a person refused it' }
  const { decision, reason, value, remarks, isChanged } = await asked.fold(
    input,
    (now) => preToolUse(subject, now),
    ctx,
  )
  if (decision === 'deny') return { action: 'reject', reason, ...remarks }
  const digest = isChanged ? digestOf(value) : undefined
  const isApproved = decision === 'ask' && ctx.answered === (digest ?? true)
  if ((decision === 'ask' || decision === 'defer') && !isApproved)
    return { action: 'suspend', ask: askOf(decision, reason, subject, value, digest), ...remarks }
  return isChanged ? { action: 'modify', input: value as JsonObject, ...remarks } : { action: 'proceed', ...remarks }
}

/** What a hook changed is run only when a person has confirmed that very change, so the answer to quote is its digest. */
function askOf(
  decision: 'ask' | 'defer',
  reason: string,
  { toolName = '' }: Subject,
  value: Json,
  digest: string | undefined,
): JsonObject {
  const about = { tool: toolName, input: value }
  if (decision === 'defer') {
    const question = reason || 'The hooks have deferred this call. Shall they look at it again?'
    return { question, ...about, schema: { type: 'boolean' } }
  }
  const question = reason || 'May this run?'
  if (digest === undefined) return { question, ...about, schema: { type: 'boolean' } }
  return { question, ...about, yes: digest, schema: { enum: [false, digest] } }
}

const digestOf = (value: Json): string => `sha256:${createHash('sha256').update(canonical(value)).digest('hex')}`

async function afterTool(
  asked: Hooks,
  subject: Subject,
  input: JsonObject,
  outcome: ShownOutcome,
  ctx: Consultation,
): Promise<AfterVerdict<'toolCall'>> {
  const result = outcome.ok ? outcome.value : null
  const tell = (now: Json) => postToolUse(subject, input, outcome.ok ? { ok: true, value: now } : outcome)
  const { decision, reason, value, remarks, context, isChanged } = await asked.fold(result, tell, ctx)
  if (decision === 'deny') return { action: 'reject', reason, ...remarks }
  if (context === '') return isChanged ? { action: 'replace', value, ...remarks } : { action: 'pass', ...remarks }
  if (typeof value !== 'string') throw noPlace('a PostToolUse hook', 'the result is no text')
  return { action: 'replace', value: `${value}\n\n${context}`, ...remarks }
}

async function beforeRun(
  asked: Hooks,
  subject: Subject,
  input: JsonObject,
  ctx: Consultation,
): Promise<BeforeVerdict<'run'>> {
  if (subject.nested === true) return { action: 'proceed' }
  const start = await asked.fold(null, () => sessionStart(subject), ctx)
  if (subject.resuming === true) {
    if (start.context !== '') throw noPlace('a SessionStart hook', 'the run is resumed')
    return { action: 'proceed', ...start.remarks }
  }
  const prompt = await asked.fold(input, userPromptSubmit, ctx)
  const remarks = joined(start.remarks, prompt.remarks)
  if (prompt.decision === 'deny') return { action: 'reject', reason: prompt.reason, ...remarks }
  const context = [start.context, prompt.context].filter((text) => text !== '').join('\n\n')
  if (context === '') return { action: 'proceed', ...remarks }
  if (!hasMessages(input)) throw noPlace('a hook', 'the input has no "messages"')
  const messages = [...input.messages, { role: 'user', content: context }]
  return { action: 'modify', input: { ...input, messages }, ...remarks }
}

async function afterRun(asked: Hooks, subject: Subject, ctx: Consultation): Promise<AfterVerdict<'run'>> {
  if (subject.nested === true) return { action: 'pass' }
  const { remarks } = await asked.fold(null, sessionEnd, ctx)
  return { action: 'pass', ...remarks }
}

const noPlace = (who: string, why: string) =>
  new SluiceError('COMMAND_HOOK_ANSWER', `${who} gave additionalContext, which has no place here: ${why}.`)

const joined = (one: Remarks, other: Remarks): Remarks =>
  warningsOf([...(one.warnings ?? []), ...(other.warnings ?? [])])

const warningsOf = (texts: readonly string[]): Remarks =>
  texts.length === 0 ? {} : { warnings: texts.slice(0, MAX_WARNINGS).map((text) => text.slice(0, MAX_WARNING)) }

/** What the hooks of one event have come to so far. */
class Fold {
  decision: Decision = 'allow'
  reason = ''
  /** The arguments, or the result, as the hooks left it. */
  value: Json
  readonly #given: Json
  readonly #contexts: string[] = []
  readonly #messages: string[] = []

  constructor(value: Json) {
    this.value = this.#given = value
  }

  add({ decision, reason = '', changed, context, message }: Said): void {
    if (message !== undefined) this.#messages.push(message)
    if (context !== undefined) this.#contexts.push(context)
    if (changed !== undefined) this.value = changed
    if (decision === undefined || DECISIONS.indexOf(decision) <= DECISIONS.indexOf(this.decision)) return
    this.decision = decision
    this.reason = reason
  }

  get isRefused(): boolean {
    return this.decision === 'deny'
  }
  get isChanged(): boolean {
    return !equal(this.value, this.#given)
  }
  get context(): string {
    return [...new Set(this.#contexts)].join('\n\n')
  }
  get remarks(): Remarks {
    return warningsOf([...new Set(this.#messages)])
  }
}

const changedAgain = (event: string, { command }: CommandHook) =>
  new SluiceError(
    'COMMAND_HOOK_ANSWER',
    `${event} hook "${command}" changed again what another had changed after it, and nobody would judge the result.`,
  )

class Hooks {
  readonly hooks: HooksByEvent
  readonly #cwd: string
  readonly #env: Readonly<Record<string, string>>
  /** A policy knows no thread: one name for all that it is asked. */
  readonly #sessionId = randomUUID()

  constructor(hooks: HooksByEvent, cwd: string, env: Readonly<Record<string, string>>) {
    this.hooks = hooks
    this.#cwd = cwd
    this.#env = env
  }

  /**
   * Asks the hooks of one event in order, and those before the last change once more about what it came to. A "no" ends it; the
   * strongest of the other decisions counts.
   */
  async fold(value: Json, tell: (value: Json) => Told, { signal }: Consultation): Promise<Fold> {
    const { event, name } = tell(value)
    const hooks = (this.hooks[event] ?? []).filter((hook) => hook.matches(name))
    const fold = new Fold(value)
    let lastChange = 0
    for (const [i, hook] of hooks.entries()) {
      const before = fold.value
      fold.add(await this.#ask(hook, tell(before), signal))
      if (fold.isRefused) return fold
      if (!equal(fold.value, before)) lastChange = i
    }
    const settled = fold.value
    for (const hook of hooks.slice(0, lastChange)) {
      fold.add(await this.#ask(hook, tell(settled), signal))
      if (fold.isRefused) return fold
      if (!equal(fold.value, settled)) throw changedAgain(event, hook)
    }
    return fold
  }

  async #ask(hook: CommandHook, { event, fields }: Told, signal: AbortSignal): Promise<Said> {
    const input = {
      session_id: this.#sessionId,
      transcript_path: devNull,
      cwd: this.#cwd,
      hook_event_name: event,
      ...fields,
    }
    const once = await runOnce(this.#program(hook), {
      input: JSON.stringify(input),
      signal,
      timeoutMs: hook.timeoutMs,
      maxStdoutBytes: MAX_STDOUT_BYTES,
    })
    try {
      return readOnce(event, hook.command, once)
    } catch (failure) {
      if (!hook.blocksOnFailure || !EVENTS[event].blocks) throw failure
      return { decision: 'deny', reason: (failure as Error).message }
    }
  }

  #program({ command, args }: CommandHook): Program {
    return {
      command: args === undefined ? ['/bin/sh', '-c', command] : [command, ...args],
      cwd: this.#cwd,
      env: this.#env,
    }
  }
}

import { SluiceError, showError } from '../errors/error.ts'
import { canonical } from '../json/canonical.ts'
import { equal } from '../json/equal.ts'
import type { Json } from '../json/json.ts'
import { own } from '../json/own.ts'
import { type Parts, type Path, pathOf } from '../json/path.ts'
import type { Asked, Closed } from './asks.ts'
import { ENGINE } from './asks.ts'
import type { Call } from './call.ts'
import type {
  ConsultedPolicy,
  DecisionRecord,
  DecisionSink,
  DecisionSubject,
  FailureCause,
  NotAskedWhy,
  Principal,
} from './decision.ts'
import type { Installed } from './installed.ts'
import type { ShownOutcome } from './outcome.ts'
import type { Timers } from './site.ts'
import type { Action, Half, Seam } from './table.ts'
import { isThenable } from './thenable.ts'
import type { Remarks, Verdict } from './verdict.ts'

const MOST = 16
const MAX_REASON_BYTES = 256
const MAX_PATH = 256

/** What records are made with. */
interface LogPlatform extends Timers {
  time(): number
  uuid(): string
  sha256(text: string): string | Promise<string>
}

export interface NotAsked {
  readonly name: string
  readonly why: NotAskedWhy
}

/** Hands records to a process's sink, one after another, and counts those it loses. */
export class DecisionWriter {
  readonly #sink: DecisionSink
  #last: Promise<unknown> | undefined
  #dropped = 0

  constructor(sink: DecisionSink) {
    this.#sink = sink
  }

  /**
   * What is to be waited for, where the sink is required. It then throws, or rejects, if the record cannot be written.
   *
   * @param warn told when records begin to be lost.
   */
  write(
    make: () => DecisionRecord | Promise<DecisionRecord>,
    warn: (message: string) => void,
    mayDrop = !this.#sink.required,
  ): void | Promise<void> {
    const written = this.#last === undefined ? this.#write(make) : this.#last.then(() => this.#write(make))
    if (!isThenable(written)) return mayDrop ? this.#drop(written, warn) : orThrow(written)
    const settled = written.then((failure) => (mayDrop ? this.#drop(failure, warn) : failure))
    const last = settled.then(() => {
      if (this.#last === last) this.#last = undefined
    })
    this.#last = last
    return mayDrop ? undefined : settled.then((failure) => orThrow(failure as Failure | undefined))
  }

  /** Settles when all that was handed over is written, or lost. */
  async settled(): Promise<void> {
    while (this.#last !== undefined) await this.#last
  }

  /** What went wrong, if something did. */
  #write(make: () => DecisionRecord | Promise<DecisionRecord>): MaybePromise<Failure | undefined> {
    try {
      const made = make()
      const written = isThenable(made) ? made.then((record) => this.#hand(record)) : this.#hand(made as DecisionRecord)
      return isThenable(written) ? (written as Promise<void>).then(done, (error) => ({ error })) : undefined
    } catch (error) {
      return { error }
    }
  }

  #hand(record: DecisionRecord): void | Promise<void> {
    const dropped = this.#dropped
    const written = this.#sink.write(dropped === 0 ? record : { ...record, dropped })
    const through = () => {
      this.#dropped -= dropped
    }
    return isThenable(written) ? (written as Promise<void>).then(through) : through()
  }

  #drop(failure: Failure | undefined, warn: (message: string) => void): undefined {
    if (failure === undefined) return undefined
    // What the sink says may name places of this machine, and warnings are for whoever asked for the run.
    if (this.#dropped++ === 0)
      warn(`decisions are not written, and lost: their sink failed with ${kindOf(failure.error)}.`)
    return undefined
  }
}

type MaybePromise<Value> = Value | Promise<Value>
interface Failure {
  readonly error: unknown
}
const done = () => undefined

function kindOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' ? code : showError(error).name
}

function orThrow(failure: Failure | undefined): void {
  if (failure === undefined) return
  throw new SluiceError(
    'DECISION_LOG_FAILED',
    'a decision could not be written to the log, which is required, so the run was stopped. Mend the sink, and continue the thread.',
    undefined,
    failure.error,
  )
}

/** Where the decisions of a run are, in its thread and in its process. */
export interface DecisionPlace {
  readonly writer: DecisionWriter
  readonly platform: LogPlatform
  readonly thread?: string
  readonly branch?: string
  readonly run: string
  readonly principal?: Principal
  /** The next number of the thread's branch. */
  next(): number
}

/** Everything that is said about one half of one call, until it is over and a record is made of it. */
export class HalfLog {
  readonly #place: DecisionPlace
  readonly #call: Call
  readonly #seam: Seam
  readonly #half: Half
  readonly #began: number
  readonly #time: number
  readonly #input: Json
  readonly #outcome: ShownOutcome | undefined
  readonly #attempt: number
  readonly #subject: DecisionSubject
  readonly #task: string | undefined
  readonly #policies: ConsultedPolicy[] = []
  readonly #notAsked: NotAsked[]
  readonly #changed = new Set<Path>()
  readonly #remarks = { warnings: [] as string[], labels: new Set<string>(), annotations: {} as Record<string, string> }
  #modifiedBy: string | undefined
  #resolved: DecisionRecord['resolved']
  #error: DecisionRecord['error']

  constructor(
    place: DecisionPlace,
    call: Call,
    seam: Seam,
    half: Half,
    apart: readonly NotAsked[],
    outcome: ShownOutcome | undefined,
  ) {
    this.#place = place
    this.#call = call
    this.#seam = seam
    this.#half = half
    this.#began = place.platform.now()
    this.#time = place.platform.time()
    this.#input = call.input
    this.#outcome = outcome
    this.#attempt = call.attempt
    this.#subject = subjectOf(call, seam)
    this.#task = call.taskId
    this.#notAsked = [...apart]
  }

  get now(): number {
    return this.#place.platform.now()
  }

  notAsked({ policy: { name } }: Installed, why: NotAskedWhy): void {
    this.#notAsked.push({ name, why })
  }

  consulted(
    { policy: { name, version }, mode }: Installed,
    verdict: Verdict,
    { since, waited, revisit, failed }: { since: number; waited?: number; revisit?: boolean; failed?: FailureCause },
  ): void {
    const { action, code } = verdict
    this.#policies.push({
      name,
      ...(version === undefined ? {} : { version }),
      mode,
      verdict: action,
      ...(code === undefined ? {} : { code }),
      ...(mode === 'shadow' && 'reason' in verdict ? { reason: shortened(verdict.reason) } : {}),
      durationMs: rounded(this.now - since),
      ...(revisit ? { revisit } : {}),
      ...(failed === undefined ? {} : { failed }),
      ...(waited === undefined || waited < 1 ? {} : { waited: rounded(waited) }),
    })
    this.#remark(verdict)
  }

  /** The one consulted last failed after all: what it gave does not fit. */
  failed({ policy: { name } }: Installed, cause: FailureCause, verdict: Action): void {
    const last = this.#policies.at(-1)
    if (last?.name === name && last.failed === undefined) {
      this.#policies[this.#policies.length - 1] = { ...last, failed: cause, verdict }
    }
    this.#error = { policy: name, cause }
  }

  resolved({ id, digest, closed }: Asked): void {
    const { by, at, principal } = closed as Closed
    this.#resolved = {
      by,
      ...(principal === undefined ? {} : { principal }),
      at: timeText(at),
      ask: id,
      digest: `sha256:${digest}`,
    }
  }

  modified({ policy: { name }, enforces }: Installed, changes: readonly Parts[]): void {
    if (enforces) this.#modifiedBy = name
    for (const change of changes) {
      if (this.#changed.size < MOST) this.#changed.add(pathOf(change).slice(0, MAX_PATH))
    }
  }

  /** The half is over. What comes back is to be waited for, and throws or rejects where a required sink fails. */
  end(decided?: { readonly by: string; readonly verdict: Verdict; readonly value?: Json }): void | Promise<void> {
    if (this.#policies.length === 0 && this.#error === undefined && this.#resolved === undefined) return undefined
    return this.#write(this.#draft(this.reserve(), decided), this.#call.input, decided?.value)
  }

  /** What a policy in shadow would have said: a record of its own, whose number was taken when it was consulted. */
  shadow(seq: number): void {
    void this.#write(this.#draft(seq), this.#input, undefined, true)
  }

  /** Takes the number of a record that comes later. */
  reserve(): number {
    return this.#place.next()
  }

  #write(draft: Draft, finalInput: Json, value: Json | undefined, mayDrop?: true): void | Promise<void> {
    const { site } = this.#call
    const warn = (message: string) => site.warn({ message })
    return this.#place.writer.write(() => this.#record(draft, finalInput, value), warn, mayDrop)
  }

  #record(draft: Draft, finalInput: Json, value: Json | undefined): DecisionRecord | Promise<DecisionRecord> {
    const before = this.#outcome ?? this.#input
    const after = this.#outcome === undefined ? finalInput : value === undefined ? this.#outcome : { ok: true, value }
    const first = this.#digest(before as Json)
    const last = equal(before as Json, after as Json) ? first : this.#digest(after as Json)
    const record = (inputDigest: string, finalDigest: string): DecisionRecord => ({
      ...draft,
      inputDigest,
      finalDigest,
    })
    return isThenable(first) || isThenable(last)
      ? Promise.all([first, last]).then(([one, other]) => record(one, other))
      : record(first as string, last as string)
  }

  #digest(what: Json): string | Promise<string> {
    const { subject } = this.#call
    const shown = own({ seam: this.#seam, subject, [this.#outcome === undefined ? 'input' : 'outcome']: what })
    const hex = this.#place.platform.sha256(canonical(shown))
    return isThenable(hex) ? hex.then((digits) => `sha256:${digits}`) : `sha256:${hex}`
  }

  #draft(seq: number, decided?: { readonly by: string; readonly verdict: Verdict }): Draft {
    const { platform, thread, branch, run, principal } = this.#place
    const task = this.#task
    const plain = this.#half === 'after' ? 'pass' : this.#modifiedBy === undefined ? 'proceed' : 'modify'
    const { code, reason } = (decided?.verdict ?? {}) as { code?: string; reason?: string }
    const { warnings, labels, annotations } = this.#remarks
    return {
      id: sortableId(platform, this.#time),
      time: timeText(this.#time),
      durationMs: rounded(this.now - this.#began),
      ...(thread === undefined ? {} : { thread }),
      ...(branch === undefined ? {} : { branch }),
      run,
      ...(task === undefined ? {} : { task }),
      seq,
      seam: this.#seam,
      half: this.#half,
      attempt: this.#attempt,
      subject: this.#subject,
      ...(principal === undefined ? {} : { principal }),
      outcome: decided?.verdict.action ?? plain,
      ...(code === undefined ? {} : { code }),
      ...(reason === undefined ? {} : { reason: shortened(reason) }),
      ...(this.#changed.size === 0 ? {} : { changed: [...this.#changed] }),
      by: decided?.by ?? this.#modifiedBy ?? ENGINE,
      policies: this.#policies,
      ...(this.#notAsked.length === 0 ? {} : { notAsked: this.#notAsked }),
      ...(this.#resolved === undefined ? {} : { resolved: this.#resolved }),
      ...(warnings.length === 0 ? {} : { warnings }),
      ...(labels.size === 0 ? {} : { labels: [...labels] }),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
      ...(this.#error === undefined ? {} : { error: this.#error }),
    }
  }

  #remark({ warnings = [], labels = [], annotations = {} }: Remarks): void {
    const kept = this.#remarks
    kept.warnings.push(...warnings.slice(0, MOST - kept.warnings.length))
    for (const label of labels) if (kept.labels.size < MOST) kept.labels.add(label)
    for (const [name, text] of Object.entries(annotations)) {
      if (Object.hasOwn(kept.annotations, name) || Object.keys(kept.annotations).length < MOST)
        kept.annotations[name] = text
    }
  }
}

type Draft = Omit<DecisionRecord, 'inputDigest' | 'finalDigest'>

const KINDS: { readonly [S in Seam]: DecisionSubject['kind'] } = {
  run: 'run',
  node: 'node',
  nodeError: 'node',
  agentRound: 'round',
  modelCall: 'model',
  toolCall: 'tool',
  ask: 'ask',
}

function subjectOf({ subject, input, round }: Call, seam: Seam): DecisionSubject {
  const { nodeName, graphName, toolName, key, source, caller, toolCallId } = subject
  const model = seam === 'modelCall' ? (input as { model?: string }).model : undefined
  return {
    kind: KINDS[seam],
    name: toolName ?? key ?? model ?? nodeName ?? graphName ?? '',
    ...(nodeName === undefined ? {} : { node: nodeName }),
    ...(source === undefined ? {} : { source }),
    ...(caller === undefined ? {} : { caller }),
    ...(toolCallId === undefined ? {} : { callId: toolCallId }),
    ...(round === undefined ? {} : { round }),
  }
}

const rounded = (ms: number): number => Math.round(ms * 1_000) / 1_000

// biome-ignore lint/style/noRestrictedGlobals: the platform says when it is, and this writes it as a text
const timeText = (ms: number): string => new Date(ms).toISOString()

/** At most 256 bytes, without control characters. */
function shortened(reason: string): string {
  let text = ''
  let bytes = 0
  for (const character of reason) {
    const code = character.codePointAt(0) as number
    const safe = isControl(code) ? `\\u${code.toString(16).padStart(4, '0')}` : character
    bytes += code < 0x80 ? safe.length : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
    if (bytes > MAX_REASON_BYTES) break
    text += safe
  }
  return text
}

const isControl = (code: number): boolean =>
  code < 0x20 ||
  (code >= 0x7f && code < 0xa0) ||
  code === 0x2028 ||
  code === 0x2029 ||
  (code >= 0xd800 && code < 0xe000)

/** A UUID of version 7: milliseconds first, so that ids sort by time. */
function sortableId(platform: LogPlatform, time: number): string {
  const ms = Math.floor(time).toString(16).padStart(12, '0')
  const random = platform.uuid()
  return random.length === 36 ? `${ms.slice(0, 8)}-${ms.slice(8)}-7${random.slice(15)}` : `${ms}-${random}`
}

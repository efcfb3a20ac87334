import { messageOf, SluiceError } from '../errors/error.ts'
import { equal } from '../json/equal.ts'
import type { Json } from '../json/json.ts'
import { own } from '../json/own.ts'
import { jsonSchemaOf } from '../state/json-schema.ts'
import { type Schema, validate } from '../state/schema.ts'
import type { Consulted } from './kept-of-principals.ts'
import { OneAtATime } from './one-at-a-time.ts'

/**
 * How far what a policy keeps holds: over one input and all runs that carry it to its end, over a thread for good, or over all
 * that is run for one principal.
 */
export type KeptScope = 'turn' | 'thread' | 'principal'

/** The same for own middleware, which does not know for whom it runs. */
export type OwnKeptScope = Exclude<KeptScope, 'principal'>

/** What a middleware keeps, as it declares it. The schema says what it starts from. */
export interface KeptOptions<Value = unknown, Scope extends KeptScope = KeptScope> {
  readonly scope: Scope
  readonly schema: Schema<unknown, Value>
}

/** Characters of JSON that one middleware may keep in one scope. */
const MAX_KEPT = 64 * 1024

/** How often a policy is consulted about one half of one call while other processes are always first to change what it keeps. */
export const MOST_TRIES = 100

/** What one middleware keeps; `mark` names the consultation that changed it. */
export interface KeptRecord {
  readonly by: string
  readonly scope: KeptScope
  /** Of the scope `principal` null: what is kept of a principal stands beside all threads. */
  readonly value: Json
  readonly mark?: string
}

/** Where what is kept is read and changed. */
export interface Held {
  read<Value>(by: string, options: KeptOptions<Value>): Value
  set(by: string, scope: KeptScope, value: Json, mark: string | undefined): void
}

/** Gives a consultation its turn at what a policy keeps of the principal that a run is for. */
export type OfPrincipal = (by: string, options: KeptOptions, consulted: Consulted) => Promise<Keeper>

/** What the middleware of a run and of those inside it keeps, and what of it is still to be written. */
export class KeptValues implements Held {
  readonly #values: Map<string, KeptRecord>
  readonly #marks: Map<string, Set<string>>
  readonly #turns = new OneAtATime()
  readonly #ofPrincipal: OfPrincipal | undefined
  readonly #changed: ((change: KeptRecord) => void) | undefined
  /** What an earlier run kept and nobody has read in this one. */
  readonly #unread: Set<string>
  /** Who keeps what, as own middleware of this run and of those inside it declares it. */
  readonly #declared = new Map<string, readonly KeptOptions[]>()

  /**
   * @param changed told of each change, where there is a thread to write it to.
   * @param ofPrincipal absent in a run that is for nobody.
   */
  constructor(
    held: Iterable<KeptRecord> = [],
    marks: Iterable<KeptRecord> = [],
    changed?: (change: KeptRecord) => void,
    ofPrincipal?: OfPrincipal,
  ) {
    this.#ofPrincipal = ofPrincipal
    this.#values = new Map([...held].map((kept) => [kept.by, kept]))
    this.#unread = new Set(this.#values.keys())
    this.#marks = new Map()
    this.#changed = changed
    for (const { by, mark } of marks) if (mark !== undefined) this.#note(by, mark)
  }

  /**
   * Says that this is what the middleware of a name keeps. Another one of the same name shares it if it declares the same.
   *
   * @throws SluiceError `KEPT_OTHER` when it is already declared otherwise.
   */
  declare(name: string, options: KeptOptions): void {
    const known = this.#declared.get(name) ?? []
    if (known.includes(options)) return
    const other = known.find((declared) => !isSame(declared, options))
    if (other !== undefined) throw declaredTwice(name, other, options)
    this.#declared.set(name, [...known, options])
  }

  /**
   * What is kept under a name; what it starts from, when that is nothing yet.
   *
   * @throws SluiceError `KEPT_OTHER` when what an earlier run kept is not what is declared.
   */
  read<Value>(name: string, { scope, schema }: KeptOptions<Value>): Value {
    const held = this.#values.get(name)
    if (held !== undefined && !this.#unread.has(name)) return held.value as Value
    if (held !== undefined && held.scope !== scope)
      throw keptOtherwise(name, `for the ${held.scope}, and it declares the ${scope}`)
    const value = readHeld(name, { scope, schema }, held)
    if (held !== undefined) this.#values.set(name, { ...held, value: value as Json })
    this.#unread.delete(name)
    return value
  }

  set(by: string, scope: KeptScope, value: Json, mark: string | undefined): void {
    const change = { by, scope, value, ...(mark === undefined ? {} : { mark }) }
    this.#values.set(by, change)
    if (mark !== undefined) this.#note(by, mark)
    this.#changed?.(change)
  }

  /** One consultation's turn at what this middleware keeps; settles when it is there. */
  async keeper(name: string, options: KeptOptions, mark: string | undefined): Promise<Keeper> {
    if (options.scope === 'principal') return this.#keeperOfPrincipal(name, options, mark)
    const take = () => this.#turns.take(name)
    const giveBack = await take()
    const kept = new Kept(this, name, options, mark)
    return new Keeper(kept, this.wasChangedAt(name, mark), { giveBack, take })
  }

  /** That a consultation has changed it is written with the thread, after what it has changed: never is that counted too little. */
  #keeperOfPrincipal(by: string, options: KeptOptions, mark: string | undefined): Promise<Keeper> {
    if (this.#ofPrincipal === undefined) throw keptOfNobody(by)
    const written = () => {
      if (mark === undefined) return
      this.#note(by, mark)
      this.#changed?.({ by, scope: 'principal', value: null, mark })
    }
    return this.#ofPrincipal(by, options, { again: () => this.wasChangedAt(by, mark), written })
  }

  /** Whether the consultation, or the call, of this mark has changed it before. */
  wasChangedAt(name: string, mark: string | undefined): boolean {
    return (mark !== undefined && this.#marks.get(name)?.has(mark)) ?? false
  }

  /** The run's superstep is through: its consultations do not come again. */
  forgetMarks(): void {
    this.#marks.clear()
  }

  /** All that is kept, for a snapshot. */
  get all(): readonly KeptRecord[] {
    return [...this.#values.values()].map(({ by, scope, value }) => ({ by, scope, value }))
  }

  #note(by: string, mark: string): void {
    const marks = this.#marks.get(by) ?? new Set<string>()
    this.#marks.set(by, marks.add(mark))
  }
}

/** One consultation's turn at what its middleware keeps, which other consultations of it wait for. */
export class Keeper {
  readonly kept: Kept
  /** Whether this very consultation has changed it before. */
  readonly again: boolean
  readonly #take: () => Promise<() => void>
  readonly #settle: (() => Promise<boolean>) | undefined
  #giveBack: () => void
  #asides = 0
  #over = false

  /** @param turn `giveBack` ends it, `take` waits for another one, and `settle` writes what no thread will write. */
  constructor(
    kept: Kept,
    again: boolean,
    {
      giveBack,
      take,
      settle,
    }: {
      giveBack(): void
      take(): Promise<() => void>
      settle?(): Promise<boolean>
    },
  ) {
    this.kept = kept
    this.again = again
    this.#giveBack = giveBack
    this.#take = take
    this.#settle = settle
  }

  /** It has answered. False when another process has changed meanwhile what it has read, and nothing of its change is written. */
  settled(): Promise<boolean> | undefined {
    if (this.#settle === undefined) return undefined
    endKept(this.kept)
    return this.#settle()
  }

  /** It has answered, or nobody waits for that any more. */
  end(): void {
    this.#over = true
    endKept(this.kept)
    this.#giveBack()
  }

  /** Lets others have their turn while it waits for what may take days. */
  async aside<Value>(wait: () => Promise<Value>): Promise<Value> {
    if (this.#asides++ === 0) this.#giveBack()
    try {
      return await wait()
    } finally {
      if (--this.#asides === 0) await this.#takeAgain()
    }
  }

  async #takeAgain(): Promise<void> {
    this.#giveBack = await this.#take()
    if (this.#over || this.#asides > 0) this.#giveBack()
  }
}

/** The middleware has answered: what it keeps is the next one's to change. No member, for a hook is given what it keeps. */
export let endKept: (kept: Kept) => void

/** A middleware's `ctx.kept`: durable, changed by one consultation at a time, and never rolled back. */
export class Kept<Value = unknown> {
  readonly #store: Held
  readonly #name: string
  readonly #options: KeptOptions<Value>
  readonly #mark: string | undefined
  #over = false

  static {
    endKept = (kept) => {
      kept.#over = true
    }
  }

  constructor(store: Held, name: string, options: KeptOptions<Value>, mark: string | undefined) {
    this.#store = store
    this.#name = name
    this.#options = options
    this.#mark = mark
  }

  /** @throws SluiceError `KEPT_OTHER` when an earlier run kept something else under this name. */
  get value(): Value {
    return this.#store.read(this.#name, this.#options)
  }

  /**
   * Makes a new value of the old one.
   *
   * @throws SluiceError `KEPT_VALUE` for one that does not fit the schema, is no JSON, or is longer than 64 KiB; `KEPT_LATE`
   *   after the middleware has answered.
   */
  update(change: (value: Value) => unknown): Value {
    if (this.#over) throw this.#refuse('KEPT_LATE', 'changes what it keeps after it has answered')
    const value = this.#read(change(this.value))
    if (JSON.stringify(value).length > MAX_KEPT) {
      throw this.#refuse('KEPT_VALUE', `keeps more than ${MAX_KEPT} characters of JSON`)
    }
    this.#store.set(this.#name, this.#options.scope, value, this.#mark)
    return value as Value
  }

  #read(value: unknown): Json {
    const what = `what ${whose(this.#name)} keeps`
    try {
      return own(validate(this.#options.schema, value, what), what)
    } catch (cause) {
      throw this.#refuse('KEPT_VALUE', `keeps what it may not: ${messageOf(cause)}`, cause)
    }
  }

  #refuse(code: string, why: string, cause?: unknown): SluiceError {
    return new SluiceError(code, `${whose(this.#name)} ${why}.`, placeOf(this.#name), cause)
  }
}

export const keptMissing = (name: string): SluiceError =>
  new SluiceError(
    'KEPT_MISSING',
    `middleware "${name}" reads what it keeps and declares nothing; give it kept: { scope, schema }.`,
    { middleware: name },
  )

/** @param by a policy that keeps something of whoever a run is for. */
export const keptOfNobody = (by: string): SluiceError =>
  new SluiceError(
    'KEPT_PRINCIPAL',
    `${whose(by)} keeps by principal, and it is not known for whom this run is, so that what it limits would not bind. ` +
      'Say so: principal: { kind, id } with the run, or --principal. A server knows who calls.',
    placeOf(by),
  )

export const keptContended = (by: string): SluiceError =>
  new SluiceError(
    'KEPT_CONTENDED',
    `${MOST_TRIES} times in a row another process had changed what ${whose(by)} keeps of this principal before it had answered.`,
    placeOf(by),
  )

/** Own middleware keeps under a name that no policy has. */
const OWN = 'middleware:'
const ownName = (by: string): string | undefined => (by.startsWith(OWN) ? by.slice(OWN.length) : undefined)

const whose = (by: string): string => {
  const name = ownName(by)
  return name === undefined ? `policy "${by}"` : `middleware "${name}"`
}

const placeOf = (by: string) => {
  const name = ownName(by)
  return name === undefined ? { policy: by } : { middleware: name }
}

/** Two declarations are one where they can be told to be: of one scope, and with one schema, or one JSON Schema of it. */
function isSame(one: KeptOptions, other: KeptOptions): boolean {
  if (one.scope !== other.scope) return false
  if (one.schema === other.schema) return true
  const [a, b] = [shapeOf(one.schema), shapeOf(other.schema)]
  return a !== undefined && b !== undefined && equal(a, b)
}

function shapeOf(schema: Schema): Json | undefined {
  try {
    return jsonSchemaOf(schema, 'what is kept')
  } catch {
    return undefined
  }
}

const declaredTwice = (name: string, one: KeptOptions, other: KeptOptions): SluiceError =>
  new SluiceError(
    'KEPT_OTHER',
    `${whose(name)} stands twice in this turn, in a graph and in one inside it, and keeps ` +
      `${one.scope === other.scope ? `something else (scope "${one.scope}", another schema)` : `one for the ${one.scope} and one for the ${other.scope}`}. ` +
      'Give one of them a name of its own, or both the same kept: { scope, schema }, and they share it.',
    placeOf(name),
  )

const keptOtherwise = (name: string, why: string, cause?: unknown): SluiceError =>
  new SluiceError(
    'KEPT_OTHER',
    `under the name of ${whose(name)} an earlier run kept ${why}. Declare what was kept, or give it a name of its own.`,
    placeOf(name),
    cause,
  )

/** What was kept, as the schema has it now; what it starts from, where that is nothing. */
export function readHeld<Value>(
  name: string,
  { schema }: KeptOptions<Value>,
  held: { readonly value: Json } | undefined,
): Value {
  if (held === undefined) return startOf(schema, name)
  try {
    const what = `what ${whose(name)} kept`
    return own(validate(schema, held.value, what), what) as Value
  } catch (cause) {
    throw keptOtherwise(name, `something else: ${messageOf(cause).replace(/\.$/, '')}`, cause)
  }
}

/** A schema starts from nothing, or from an object without members. */
function startOf<Value>(schema: Schema<unknown, Value>, name: string): Value {
  const what = `what ${whose(name)} keeps at first`
  try {
    return own(validate(schema, undefined, what), what) as Value
  } catch {
    return own(validate(schema, {}, what), what) as Value
  }
}

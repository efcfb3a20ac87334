import type { ChatMessage } from '../../chat/chat.ts'
import { SluiceError } from '../../errors/error.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import type { Platform } from '../../run/platform.ts'
import { blocks } from '../../seams/blocks.ts'
import type { StreamGate } from '../../seams/own.ts'
import type { ModelMiddlewareContext, ToolMiddlewareContext } from '../contexts.ts'
import { Middleware } from '../middleware.ts'
import { readMembers } from '../reading.ts'
import { cutOf, LOOK_AHEAD } from './cut.ts'
import { FINDERS, type Finding, findAll, PII_KINDS, type PiiDetector, type PiiKind } from './detect.ts'
import { type PiiStrategy, replacementOf, STRATEGIES } from './strategy.ts'

export type { PiiDetector, PiiKind } from './detect.ts'
export type { PiiStrategy } from './strategy.ts'

/** Where is looked. */
export interface PiiPlaces {
  /** What a model is sent: messages of every role but `system`. On by default. */
  readonly input?: boolean
  /** What a model says. On by default. */
  readonly output?: boolean
  /** What tools return. On by default. */
  readonly toolResults?: boolean
  /** What tools are called with. Off by default: a tool that sends mail needs the address. */
  readonly toolArguments?: boolean
}

export interface PiiOptions {
  /** The built-in detectors in use; all of them without it. */
  readonly kinds?: readonly PiiKind[]
  /** Detectors of your own. */
  readonly detectors?: readonly PiiDetector[]
  /** For every kind, or kind by kind; a kind that is not named is redacted. */
  readonly strategy?: PiiStrategy | Readonly<Record<string, PiiStrategy>>
  readonly where?: PiiPlaces
  /** Goes into every digest; needed for `hash`. Keep it secret: without one, all phone numbers are tried in a minute. */
  readonly salt?: string
  /**
   * When what a model says leaves in a stream: as a whole once it was judged, or in blocks of at least so many characters,
   * 1 or more. `hold` without it.
   */
  readonly stream?: 'hold' | { readonly characters: number }
  /** Names it where there are two; `PiiMiddleware` without it. */
  readonly name?: string
}

const OPTIONS = ['kinds', 'detectors', 'strategy', 'where', 'salt', 'stream', 'name'] as const

/** A value as it may be used, and the kinds for which nothing of it may. */
interface Judged<Value> {
  readonly value: Value
  readonly blocked: ReadonlySet<string>
}

/**
 * Finds personal data and secrets in what a model is sent, in what it says and in what tools return, and blocks, redacts, hashes
 * or masks them. What is stored of the conversation stays as it is; only requests, responses and results are changed.
 *
 * @throws RangeError for a kind, a strategy or a detector's name that is none, two detectors of one name, nothing to look for or
 *   nowhere to look; TypeError for an unknown option, and for `hash` without a salt or in blocks.
 */
export class PiiMiddleware extends Middleware {
  override readonly name: string
  /** Nothing that a model says leaves before it was judged. */
  override readonly stream: StreamGate
  readonly #detectors: readonly PiiDetector[]
  readonly #strategies: ReadonlyMap<string, PiiStrategy>
  readonly #salt: string
  /** Messages are frozen and shared, so a conversation that only grows is looked at where it is new. */
  readonly #known = new WeakMap<ChatMessage, Judged<ChatMessage>>()

  constructor(options: PiiOptions = {}) {
    super()
    readMembers(options, OPTIONS, 'PiiMiddleware')
    const { kinds = PII_KINDS, detectors = [], strategy = 'redact', where = {}, salt, stream = 'hold' } = options
    requireDetectors(kinds, detectors)
    const listed = [...detectors, ...PII_KINDS.filter((kind) => kinds.includes(kind)).map(builtIn)]
    this.name = options.name ?? 'PiiMiddleware'
    this.#strategies = strategiesOf(strategy, listed)
    this.#detectors = listed.toSorted((a, b) => this.#severity(a.name) - this.#severity(b.name))
    this.#salt = salt ?? ''
    const hashes = [...this.#strategies.values()].includes('hash')
    if (hashes && !salt) throw new TypeError(`${HASH} needs a salt; without one the values behind it can be guessed.`)
    if (hashes && stream !== 'hold') throw new TypeError(`${HASH} needs stream: "hold"; digests take their time.`)
    const output = this.#switch(where)
    this.stream = !output ? 'pass' : stream === 'hold' ? 'hold' : this.#inBlocks(stream.characters)
  }

  /** A hook that is switched off is none: the engine takes for one what is a function. Says whether output is judged. */
  #switch(where: PiiPlaces): boolean {
    readMembers(where, ['input', 'output', 'toolResults', 'toolArguments'], 'PiiMiddleware: where')
    const { input = true, output = true, toolResults = true, toolArguments = false } = where
    const hooks = { beforeModel: input, afterModel: output, afterTool: toolResults, beforeTool: toolArguments }
    const off = Object.entries(hooks).filter(([, on]) => !on)
    if (off.length === 4) throw new RangeError('PiiMiddleware: where: nothing is switched on.')
    for (const [hook] of off) Object.defineProperty(this, hook, { value: undefined })
    return output
  }

  #inBlocks(characters: number): StreamGate {
    if (!Number.isSafeInteger(characters) || characters < 1) {
      throw new RangeError(`PiiMiddleware: stream.characters is ${characters}; give a whole number of 1 or more.`)
    }
    return blocks(characters + LOOK_AHEAD, async (block, { last }) => {
      const findings = findAll(this.#detectors, block)
      const cut = last ? block.length : cutOf(block, findings)
      const { value, blocked } = await this.#put(block, findings, NEVER)
      if (blocked.size > 0) throw new SluiceError('PII_BLOCKED', `${this.name}: ${spoken(blocked)}`)
      if (last) return value
      const leaving = findings.filter(({ end }) => end <= cut)
      return { leaves: (await this.#put(block.slice(0, cut), leaving, NEVER)).value, held: block.slice(cut) }
    })
  }

  override async beforeModel(ctx: ModelMiddlewareContext) {
    const judged = await Promise.all(ctx.request.messages.map((message) => this.#message(message, ctx)))
    const blocked = judged.flatMap((one) => [...one.blocked])
    if (blocked.length > 0) return ctx.reject(`the request holds ${inWords(blocked)}, which may not be sent`)
    const messages = judged.map(({ value }) => value)
    return messages.every((message, i) => message === ctx.request.messages[i]) ? undefined : ctx.replace({ messages })
  }

  override async afterModel(ctx: ModelMiddlewareContext) {
    const { value: content, blocked } = await this.#text(ctx.response.content, ctx)
    if (blocked.size > 0) return ctx.fail(spoken(blocked))
    return content === ctx.response.content ? undefined : ctx.replace({ ...ctx.response, content })
  }

  override async beforeTool(ctx: ToolMiddlewareContext) {
    const { value, blocked } = await this.#json(ctx.value, ctx)
    if (blocked.size > 0) return ctx.reject(`the arguments hold ${inWords(blocked)}, which may not be passed on`)
    return value === ctx.value ? undefined : ctx.replace(value as JsonObject)
  }

  override async afterTool(ctx: ToolMiddlewareContext) {
    const { value, blocked } = await this.#json(ctx.value, ctx)
    if (blocked.size > 0) return ctx.reject(`the result holds ${inWords(blocked)}, which may not be shown`)
    return value === ctx.value ? undefined : ctx.replace(value)
  }

  async #message(message: ChatMessage, ctx: Hashes): Promise<Judged<ChatMessage>> {
    if (message.role === 'system') return { value: message, blocked: NONE }
    const known = this.#known.get(message)
    if (known !== undefined) return known
    const { value: content, blocked } = await this.#text(message.content, ctx)
    const judged = { value: content === message.content ? message : { ...message, content }, blocked }
    this.#known.set(message, judged)
    return judged
  }

  /** The same object where nothing is found. Names of members are looked at like their values. */
  async #json(value: Json, ctx: Hashes): Promise<Judged<Json>> {
    if (typeof value === 'string') return this.#text(value, ctx)
    if (typeof value === 'number') {
      const text = await this.#text(String(value), ctx)
      return text.value === String(value) ? { value, blocked: text.blocked } : text
    }
    if (typeof value !== 'object' || value === null) return { value, blocked: NONE }
    if (Array.isArray(value)) {
      const items = await Promise.all(value.map((item) => this.#json(item, ctx)))
      const changed = items.some((item, i) => item.value !== value[i])
      return { value: changed ? items.map((item) => item.value) : value, blocked: unionOf(items) }
    }
    const entries = Object.entries(value)
    const names = await Promise.all(entries.map(([name]) => this.#text(name, ctx)))
    const members = await Promise.all(entries.map(([, member]) => this.#json(member as Json, ctx)))
    const changed = entries.some(([name, member], i) => names[i]?.value !== name || members[i]?.value !== member)
    const blocked = unionOf([...names, ...members])
    if (!changed) return { value, blocked }
    const result: Record<string, Json> = {}
    for (const [i, { value: name }] of names.entries()) result[unused(name, result)] = members[i]?.value as Json
    return { value: result, blocked }
  }

  async #text(text: string, { platform }: Hashes): Promise<Judged<string>> {
    const findings = findAll(this.#detectors, text)
    return findings.length === 0 ? { value: text, blocked: NONE } : this.#put(text, findings, platform)
  }

  /** The text with something else in the place of each finding. */
  async #put(text: string, findings: readonly Finding[], platform: Hashes['platform']): Promise<Judged<string>> {
    const sha256 = (salted: string) => platform.sha256(salted)
    const blocked = new Set<string>()
    let value = ''
    let at = 0
    for (const finding of findings) {
      const strategy = this.#strategyOf(finding.kind)
      if (strategy === 'block') blocked.add(finding.kind)
      const found = text.slice(finding.start, finding.end)
      value += text.slice(at, finding.start) + (await replacementOf(finding, found, strategy, sha256, this.#salt))
      at = finding.end
    }
    return { value: value + text.slice(at), blocked }
  }

  #strategyOf(kind: string): PiiStrategy {
    return this.#strategies.get(kind) as PiiStrategy
  }

  #severity(kind: string): number {
    return STRATEGIES.indexOf(this.#strategyOf(kind))
  }
}

interface Hashes {
  readonly platform: Pick<Platform, 'sha256'>
}

const HASH = 'PiiMiddleware: strategy "hash"'

/** Where nothing is hashed. */
const NEVER: Hashes['platform'] = { sha256: () => '' }

const NONE: ReadonlySet<string> = new Set()

const unionOf = (all: readonly Judged<unknown>[]): ReadonlySet<string> =>
  new Set(all.flatMap(({ blocked }) => [...blocked]))

const inWords = (kinds: Iterable<string>) => [...new Set(kinds)].toSorted().join(', ')

const spoken = (kinds: Iterable<string>) => `the response holds ${inWords(kinds)}, which may not be shown`

/** Two names may become one; no member is lost for that. */
function unused(name: string, taken: object): string {
  if (!Object.hasOwn(taken, name)) return name
  for (let i = 2; ; i++) if (!Object.hasOwn(taken, `${name} ${i}`)) return `${name} ${i}`
}

const builtIn = (name: PiiKind): PiiDetector => ({ name, find: FINDERS[name] })

const DETECTOR_NAME = /^[a-z][a-z0-9_-]{0,31}$/

function requireDetectors(kinds: readonly PiiKind[], detectors: readonly PiiDetector[]): void {
  const wrong = kinds.find((kind) => !PII_KINDS.includes(kind))
  if (wrong !== undefined) {
    throw new RangeError(`PiiMiddleware: kind "${wrong}" is none; kinds are: ${PII_KINDS.join(', ')}.`)
  }
  const names = new Set<string>(PII_KINDS)
  for (const { name } of detectors) {
    if (!DETECTOR_NAME.test(name)) {
      throw new RangeError(
        `PiiMiddleware: "${name}" is no name of a detector; use lower-case letters, digits, "_" and "-".`,
      )
    }
    if (names.has(name)) throw new RangeError(`PiiMiddleware: there is a detector "${name}" already; name yours apart.`)
    names.add(name)
  }
  if (kinds.length + detectors.length === 0) throw new RangeError('PiiMiddleware: there is nothing to look for.')
}

function strategiesOf(
  strategy: NonNullable<PiiOptions['strategy']>,
  detectors: readonly PiiDetector[],
): ReadonlyMap<string, PiiStrategy> {
  const named: Readonly<Record<string, PiiStrategy>> = typeof strategy === 'string' ? {} : strategy
  const other = typeof strategy === 'string' ? strategy : 'redact'
  const stray = Object.keys(named).find((kind) => !detectors.some(({ name }) => name === kind))
  if (stray !== undefined) {
    throw new RangeError(
      `PiiMiddleware: strategy names "${stray}", which is not looked for; looked for are: ${detectors.map(({ name }) => name).join(', ')}.`,
    )
  }
  const strategies = new Map(detectors.map(({ name }) => [name, named[name] ?? other]))
  for (const chosen of strategies.values()) {
    if (!STRATEGIES.includes(chosen)) {
      throw new RangeError(`PiiMiddleware: "${chosen}" is no strategy; strategies are: ${STRATEGIES.join(', ')}.`)
    }
  }
  return strategies
}

import type { PolicyHandlers } from '../author/handlers.ts'
import type { AfterShown, AfterVerdict, BeforeShown, BeforeVerdict } from '../author/verdict.ts'
import type { ChatRequest, ChatResponse, Json, JsonObject } from '../generated/chat.ts'
import { type Half, SEAMS, type Seam, type Subject } from '../generated/seams.ts'
import { Session } from '../runtime/session.ts'
import { CAPABILITIES, errorLine, FAULT, type Id, requestLine, resultLine } from '../wire/frames.ts'
import { Outbox } from '../wire/outbox.ts'
import { faultOfVerdict } from './check-verdict.ts'

interface Told {
  /** What `ctx.subject` is shown of the step; `{}` when a policy does not look at it. */
  readonly subject?: Subject
  /** The operator's settings; `{}` when there are none. Neither they nor `kept` are checked against the manifest's schemas. */
  readonly settings?: JsonObject
  /** What the policy keeps so far; without it, `ctx.kept` is that of a manifest that declares nothing. */
  readonly kept?: JsonObject
  readonly answered?: Json
  /** 1 where nothing is said. */
  readonly attempt?: number
  /** The attempt itself where nothing is said: the last one. */
  readonly maxAttempts?: number
  readonly revisit?: boolean
  readonly labels?: readonly string[]
  readonly substituted?: string
  /** Plays the model that the policy's `llm_config` would name. */
  readonly callModel?: (
    request: Omit<ChatRequest, 'model'> & { model?: string },
  ) => ChatResponse | Promise<ChatResponse>
  /** Plays the tools of the run. */
  readonly runTool?: (name: string, input: JsonObject) => Json | Promise<Json>
}

/** A consultation to be played: `input` makes it one of `before`, `outcome` one of `after`. */
export type PolicyTest<S extends Seam = Seam> = Told & { readonly seam: S } & (
    | (Pick<BeforeShown<S>, 'input'> & { readonly outcome?: undefined })
    | (Pick<AfterShown<S>, 'outcome'> & Partial<Pick<AfterShown<S>, 'input'>>)
  )

/** What came of it. */
export interface PolicyTested<S extends Seam = Seam> {
  /** As it goes over the wire, and admitted by this half. */
  readonly verdict: BeforeVerdict<S> | AfterVerdict<S>
  /** What the policy keeps from now on; `undefined` when it did not change that. */
  readonly kept: Json | undefined
  readonly events: readonly { readonly name: string; readonly data: Json }[]
  readonly logs: readonly { readonly level: string; readonly message: string }[]
}

/**
 * Consults a policy once, as a host would: what it is shown and what it answers cross the wire as JSON.
 *
 * @param handlers of one policy, as they are handed to `serve`.
 * @throws what the handler threw; Error when there is no handler for this half, or for an answer that is no verdict of it; the
 *   text is what the run would end with.
 */
export async function testPolicy<S extends Seam, KeptValue = unknown>(
  handlers: PolicyHandlers<KeptValue>,
  given: PolicyTest<S>,
): Promise<PolicyTested<S>> {
  const { seam, outcome } = given
  const half: Half = outcome === undefined ? 'before' : 'after'
  const { answer, events, logs } = await consult(handlers as Served, seam, half, given)
  const fault = faultOfVerdict(seam, half, answer)
  if (fault !== undefined) throw new Error(`the policy ${fault}`)
  const { kept, ...verdict } = answer as { readonly kept?: Json }
  return { verdict: verdict as PolicyTested<S>['verdict'], kept, events, logs }
}

/** What the handlers are served as; the name stands in the message about one that is missing. */
const POLICY = 'Policy'
/** The id of the one call. */
const CALL = 2

type Params = { readonly [name: string]: unknown }

interface Message {
  readonly id: Id
  readonly method?: string
  readonly params?: Params
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

/** Plays the host's side of one call. */
function consult(handlers: Served, seam: Seam, half: Half, given: Told) {
  const events: { name: string; data: Json }[] = []
  const logs: { level: string; message: string }[] = []
  return new Promise<{ answer: unknown; events: typeof events; logs: typeof logs }>((resolve, reject) => {
    let thrown: { readonly error: unknown } | undefined
    const caught = catching(handlers, seam, half, (error) => {
      thrown = { error }
    })
    const receive = async ({ id, method, params, result, error }: Message) => {
      const { call: _, ...said } = params ?? {}
      if (method === 'emitEvent') events.push(said as (typeof events)[0])
      else if (method === 'log') logs.push(said as (typeof logs)[0])
      else if (method === 'runTool' || method === 'callModel') session.receive(await served(id, method, said, given))
      else if (id !== CALL) return
      else if (error === undefined) resolve({ answer: result, events, logs })
      else reject(thrown === undefined ? new Error(error.message) : thrown.error)
    }
    const outbox = new Outbox((text) => {
      for (const line of text.trimEnd().split('\n')) void receive(JSON.parse(line))
    })
    const session = new Session({
      served: { handlers: { [POLICY]: caught }, tools: {} },
      outbox,
      shutdown: undefined,
      exit() {},
    })
    session.receive(requestLine(1, 'init', JSON.stringify({ capabilities: CAPABILITIES })))
    session.receive(requestLine(CALL, half, JSON.stringify(paramsOf(seam, half, given))))
  })
}

function paramsOf(seam: Seam, half: Half, given: Told): object {
  const { subject = {}, settings = {}, attempt = 1, maxAttempts = attempt, revisit = false, labels = [] } = given
  const { input, outcome, substituted, answered, kept } = given as Told & { input?: unknown; outcome?: unknown }
  const same = { componentType: POLICY, component: settings, seam, admits: SEAMS[seam][half], subject, input, outcome }
  return { ...same, attempt, maxAttempts, revisit, labels, substituted, answered, kept }
}

type Served = { readonly [seam: string]: { readonly [half: string]: unknown } | undefined }

/** The handlers, with what this one throws handed over as it is: what crosses the wire has no stack. */
function catching(handlers: Served, seam: Seam, half: Half, thrown: (error: unknown) => void): Served {
  const halves = handlers[seam]
  const handler = halves?.[half]
  if (typeof handler !== 'function') return handlers
  const caught = async (shown: unknown, ctx: unknown) => {
    try {
      return await handler.call(halves, shown, ctx)
    } catch (error) {
      thrown(error)
      throw error
    }
  }
  return { [seam]: { [half]: caught } }
}

/** The line that answers what the policy asked for. */
async function served(id: Id, method: 'runTool' | 'callModel', params: Params, given: Told): Promise<string> {
  const { name, input, ...request } = params
  try {
    if (given[method] === undefined) throw new Error(`the policy asks for ${method}, and testPolicy was given none`)
    const answer =
      method === 'runTool'
        ? await given.runTool?.(name as string, input as JsonObject)
        : await given.callModel?.(request as never)
    return resultLine(id, JSON.stringify(answer ?? null))
  } catch (error) {
    const { name, message } = error as Error
    return errorLine(id, { code: FAULT.handler, message, data: { name } })
  }
}

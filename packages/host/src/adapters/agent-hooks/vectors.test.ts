import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import {
  createAgent,
  type Json,
  type JsonObject,
  type Policy,
  type ScriptedReply,
  scripted,
  type Tool,
} from '@sluice/core'
import { play } from '@sluice/core/testing'
import { describe, expect, it } from 'vitest'
import { compileSchema, type Fits } from '../../manifest/schema.ts'
import { agentHooks } from './agent-hooks.ts'
import type { ApprovalRequest } from './approval.ts'
import type { Composition } from './compose.ts'
import type { AgentContext } from './context.ts'
import { identityOf } from './identity.ts'
import type { AgentHooksOptions, Interceptor } from './options.ts'
import { setAt } from './path.ts'
import type { InterceptionRecord } from './record.ts'

const corpus =
  process.env.SLUICE_HOOKS_CORPUS ?? fileURLToPath(new URL('../../../../../../shared/agent-hooks', import.meta.url))
const folder = `${corpus}/responsibleai`
const isThere = existsSync(folder)
if (!isThere)
  console.warn('The vectors of AGENT-HOOKS are not there; set SLUICE_HOOKS_CORPUS to the folder that has them.')

/** Vectors that are not played, and why. */
const NOT_PLAYED: { readonly [id: string]: string } = {
  'AH-CTK-090': 'an integer beyond 2^53 is rounded when JSON is read, before anybody could see it',
  'AH-CTK-091': 'an integer beyond 64 bits, the same',
  'AH-CTK-095': 'an integer beyond 2^53 in an edit, the same',
  'AH-CTK-110': 'parts of a response are held until the whole is judged; judging prefixes is not offered',
  'AH-CTK-111': 'the same',
  'AH-CTK-112': 'the same',
  'AH-CTK-113': 'the same',
}

interface Rule {
  readonly at: string
  readonly match?: JsonObject
  readonly return?: Json
  readonly fault?: 'raise' | 'malformed_verdict' | 'mutate'
}

interface Vector {
  readonly id: string
  readonly title: string
  readonly mode?: 'enforce' | 'evaluate_only'
  readonly composition?: Composition
  readonly identity_provider?: 'jcs-sha256' | 'ctk-fault' | null
  readonly redact_for_approval?: readonly string[]
  readonly interceptor_script?: readonly Rule[]
  readonly interceptor_scripts?: readonly (readonly Rule[])[]
  readonly approval_script?: readonly { readonly match?: JsonObject; readonly resolve: JsonObject }[]
  readonly scenario: {
    readonly input: { readonly content: string }
    readonly tools?: readonly { readonly name: string; readonly behavior: readonly Behaviour[] }[]
    readonly model_script?: readonly { readonly respond: Respond }[]
  }
  readonly expect: Expected
}

interface Behaviour {
  readonly when_args?: JsonObject
  readonly return: Json
  readonly is_error?: boolean
}
interface Respond {
  readonly content: string | null
  readonly tool_calls: readonly { readonly id: string; readonly name: string; readonly args: JsonObject }[]
  readonly finish_reason: string
}

interface Expected {
  readonly interceptions: readonly {
    readonly interception_point: string
    readonly context?: JsonObject
    readonly context_must_contain?: readonly string[]
    readonly context_must_not_contain?: readonly string[]
  }[]
  readonly sequence_strict?: boolean
  readonly interceptions_absent?: readonly string[]
  readonly tool_invocations?: readonly JsonObject[]
  readonly tool_not_invoked?: readonly string[]
  readonly final_output?: Json
  readonly run_outcome: string
  readonly run_outcome_by_posture?: { readonly outcomes: { readonly terminate: string } }
  readonly identities_equal?: boolean
  readonly records?: readonly {
    readonly interception_point: string
    readonly assert?: JsonObject
    readonly absent?: readonly string[]
    readonly present?: readonly string[]
  }[]
}

const read = (path: string) => JSON.parse(readFileSync(`${folder}/${path}`, 'utf8'))
const isPlayed = (file: string) => !Object.keys(NOT_PLAYED).some((id) => file.startsWith(id))
const files = isThere ? readdirSync(`${folder}/vectors`).toSorted() : []
const vectors: readonly Vector[] = files.filter(isPlayed).map((file) => read(`vectors/${file}`))

/** What stands at `a.b[0].c`. */
const at = (value: unknown, path: string): unknown =>
  path
    .split(/\.|\[(\d+)\]/)
    .filter((part) => part !== undefined && part !== '')
    .reduce<unknown>((now, part) => (now as Record<string, unknown> | undefined)?.[part], value)

const matches = (value: unknown, match: JsonObject = {}): boolean =>
  Object.entries(match).every(([path, expected]) => isDeepStrictEqual(at(value, path), expected))

/** An interceptor that follows a script; what it is shown is noted. */
function scriptedInterceptor(rules: readonly Rule[], note: (context: AgentContext) => void): Interceptor {
  return (context) => {
    note(structuredClone(context))
    const rule = rules.find(({ at: point, match }) => point === context.interception_point && matches(context, match))
    if (rule?.fault === 'raise') throw new Error('raised')
    if (rule?.fault === 'malformed_verdict') return { decision: 'transform' }
    if (rule?.fault === 'mutate') {
      Object.assign(context.target as object, { url: 'mutated' })
      Object.assign(context, { tool_call: { id: 'x', name: 'x', args: {} } })
      return { decision: 'allow', reason: 'ctk:mutated' }
    }
    return rule?.return ?? { decision: 'allow' }
  }
}

/** Answers a request as the script says. */
function answering({ approval_script: script = [] }: Vector) {
  return (ask: { readonly payload: Json }): Json => {
    const { request, approve } = ask.payload as unknown as { request: ApprovalRequest; approve: JsonObject }
    const rule = script.find(({ match }) => matches(request.context, match))
    if (rule === undefined) throw new Error('no rule of the script answers this request')
    const { outcome, verdict, fault, identity_override: other, echo_recomputed } = rule.resolve
    // A resolver that raises gives no resolution; somebody who answers here can only give something that is none.
    if (fault !== undefined) return null
    const quoted =
      echo_recomputed === true ? identityOf('jcs-sha256', request.context) : (other ?? request.context_identity)
    const { question } = approve
    return {
      context_identity: quoted,
      ...(outcome !== undefined && { outcome }),
      ...(verdict !== undefined && { verdict }),
      ...(question !== undefined && { question }),
    }
  }
}

/** The tools of a scenario; each call that runs is noted. */
function toolsOf({ scenario: { tools = [] } }: Vector, ran: JsonObject[]): readonly Tool[] {
  return tools.map(({ name, behavior }) => ({
    name,
    description: name,
    parameters: { type: 'object' },
    source: 'code',
    idempotent: false,
    readArguments: (args) => args as JsonObject,
    readResult: (value) => value as Json,
    run: (args) => {
      ran.push({ name, args })
      const { return: value, is_error } = behavior.find(({ when_args }) => matches(args, when_args)) ?? { return: null }
      if (is_error) throw new Error(JSON.stringify(value))
      return value
    },
  }))
}

const replies = ({ scenario: { model_script = [] } }: Vector): readonly ScriptedReply[] =>
  model_script.map(({ respond: { content, tool_calls, finish_reason } }) => ({
    content: content ?? '',
    finish_reason,
    ...(tool_calls.length > 0 && {
      tool_calls: tool_calls.map(({ id, name, args }) => ({ id, name, arguments: args })),
    }),
  }))

/** An agent that plays the scenario, with these policies around its every step. */
async function run(vector: Vector, policies: readonly Policy[], ran: JsonObject[]) {
  const agent = createAgent({ model: scripted(replies(vector)), tools: toolsOf(vector, ran) })
  const { content } = vector.scenario.input
  const { status, state, error } = await play(agent, { input: content as never, policies, answer: answering(vector) })
  const { code = '', message } = (error ?? {}) as { readonly code?: string; readonly message?: string }
  const isBlocked = ['REFUSED', 'FAILED_BY_MIDDLEWARE', 'MIDDLEWARE_FAILED'].includes(code)
  return {
    outcome: status === 'completed' ? 'completed' : isBlocked ? 'blocked' : `error: ${message}`,
    final: status === 'completed' ? (state as { finalText: Json }).finalText : null,
  }
}

const scriptsOf = ({ interceptor_script: one, interceptor_scripts: several }: Vector) => several ?? [one ?? []]

const namesOf = ({ scenario: { tools = [] } }: Vector) => tools.map(({ name }) => name)

/** One policy with all interceptors of the vector. */
async function playBridge(vector: Vector) {
  const seen = new Map<number, AgentContext>()
  const records = new Map<number, InterceptionRecord>()
  const ran: JsonObject[] = []
  const fault = {
    name: 'ctk-fault',
    identify: () => {
      throw new Error('no identity')
    },
  }
  const { identity_provider: provider, redact_for_approval: paths = [] } = vector
  const redact = (context: AgentContext): AgentContext => {
    const target = paths.reduce<Json>((now, path) => setAt(now, path, '[redacted]') as Json, context.target)
    return { ...context, target, tool_call: { ...(context.tool_call as JsonObject), args: target } }
  }
  const options: AgentHooksOptions = {
    interceptors: scriptsOf(vector).map((rules) =>
      scriptedInterceptor(rules, (context) => seen.has(context.sequence) || seen.set(context.sequence, context)),
    ),
    tools: namesOf(vector),
    evaluateOnly: vector.mode === 'evaluate_only',
    approvals: (vector.approval_script ?? []).length > 0,
    onRecord: (record) => records.set(record.sequence, record),
    ...(vector.composition && { composition: vector.composition }),
    ...(provider !== undefined && { identityProvider: provider === 'ctk-fault' ? fault : provider }),
    ...(paths.length > 0 && { redact }),
  }
  const came = await run(vector, [agentHooks(options)], ran)
  return { ...came, ran, seen: [...seen.values()], records: [...records.values()] }
}

/** Compiles a published schema; those of contexts and records refer to that of the points only. */
async function schemaOf(name: string): Promise<Fits> {
  const { $id: _, ...schema } = read(`schema/${name}.schema.json`)
  const { $id: _id, ...points } = read('schema/interception-point.schema.json')
  const text = JSON.stringify(schema, (_key, value) =>
    value?.$ref === 'interception-point.schema.json' ? points : value,
  )
  return compileSchema(JSON.parse(text), name)
}

function checkInterceptions(expected: Expected, seen: readonly AgentContext[]): void {
  const points = seen.map(({ interception_point }) => interception_point as string)
  const wanted = expected.interceptions.map(({ interception_point }) => interception_point)
  if (expected.sequence_strict !== false) expect(points).toEqual(wanted)
  let from = 0
  for (const { interception_point, context, ...texts } of expected.interceptions) {
    const found = points.indexOf(interception_point, from)
    const fits = (i: number) =>
      points[i] === interception_point &&
      matches(seen[i], context) &&
      (texts.context_must_contain ?? []).every((text) => JSON.stringify(seen[i]).includes(text)) &&
      !(texts.context_must_not_contain ?? []).some((text) => JSON.stringify(seen[i]).includes(text))
    const fitting = points.findIndex((_, i) => i >= from && fits(i))
    expect(
      fitting,
      `${interception_point} with ${JSON.stringify(context)}; shown was ${JSON.stringify(seen[found])}`,
    ).not.toBe(-1)
    from = fitting + 1
  }
  for (const absent of expected.interceptions_absent ?? []) expect(points).not.toContain(absent)
}

function checkRecords(expected: Expected, records: readonly InterceptionRecord[]): void {
  let from = 0
  for (const { interception_point, assert = {}, absent = [], present = [] } of expected.records ?? []) {
    const found = records.findIndex((record, i) => i >= from && record.interception_point === interception_point)
    expect(found, `a record of ${interception_point}`).not.toBe(-1)
    const record = records[found]
    const asserted = Object.fromEntries(Object.keys(assert).map((path) => [path, at(record, path)]))
    expect(asserted).toEqual(assert)
    for (const path of absent) expect(at(record, path)).toBeUndefined()
    for (const path of present) expect(at(record, path)).toBeDefined()
    from = found + 1
  }
  if (expected.identities_equal === undefined) return
  const differ = records.filter(({ input_identity, enforced_identity }) => input_identity !== enforced_identity)
  expect(differ.length === 0).toBe(expected.identities_equal)
}

function checkRun(expected: Expected, came: { outcome: string; final: Json; ran: readonly JsonObject[] }): void {
  expect(came.outcome).toBe(expected.run_outcome_by_posture?.outcomes.terminate ?? expected.run_outcome)
  if (expected.tool_invocations !== undefined) expect(came.ran).toEqual(expected.tool_invocations)
  for (const name of expected.tool_not_invoked ?? []) expect(came.ran.map((call) => call.name)).not.toContain(name)
  // Where what failed ends the run, it hands out nothing.
  if (expected.final_output !== undefined && came.outcome !== 'blocked')
    expect(came.final).toEqual(expected.final_output)
}

describe.skipIf(!isThere)('the vectors of AGENT-HOOKS 0.1, on an agent', () => {
  it('each is played, or listed with the reason why not', () => {
    const listed = files.filter((file) => !isPlayed(file)).map((file) => file.slice(0, 10))
    expect(listed).toEqual(Object.keys(NOT_PLAYED))
    expect(vectors).toHaveLength(44)
  })

  it.each(vectors)('$id: $title', async (vector) => {
    const [fitsContext, fitsRecord] = await Promise.all(['agent-context', 'interception-record'].map(schemaOf))
    const played = await playBridge(vector)
    checkInterceptions(vector.expect, played.seen)
    checkRecords(vector.expect, played.records)
    checkRun(vector.expect, played)
    for (const context of played.seen) fitsContext?.(context, 'a context')
    for (const record of played.records) fitsRecord?.(record, 'a record')
  })
})

const golden = isThere ? read('golden/identity.json').fixtures : []
interface Fixture {
  readonly id: string
  readonly note: string
  readonly ctx: AgentContext
  readonly expect: { readonly context_identity?: string; readonly error?: string }
}
/** Its expected text is off by one in the last place of a number that Node and Python both print as the document has it. */
const WRONG = 'G-15-rfc8785-numbers'

describe.skipIf(!isThere)('the identity of a context', () => {
  it.each((golden as readonly Fixture[]).filter(({ id }) => id !== WRONG))(
    '$id: $note',
    ({ ctx, expect: expected }) => {
      if (expected.error === undefined) expect(identityOf('jcs-sha256', ctx)).toBe(expected.context_identity)
      else expect(() => identityOf('jcs-sha256', ctx)).toThrow(Error)
    },
  )
})

/** Vectors whose rules are those of our own chain too: each interceptor is a policy of its own. */
const index: readonly { readonly id: string; readonly run: string }[] = isThere
  ? JSON.parse(readFileSync(`${corpus}/index.json`, 'utf8')).vectors
  : []
const chained = vectors.filter(({ id }) => index.some((entry) => entry.id === id && entry.run === 'engine'))

describe.skipIf(!isThere)('the same, each interceptor a policy of its own', () => {
  it.each(chained)('$id: $title', async (vector) => {
    const ran: JsonObject[] = []
    const policies = scriptsOf(vector).map((rules, i) =>
      agentHooks({
        name: `Interceptor${i}`,
        interceptors: [scriptedInterceptor(rules, () => undefined)],
        evaluateOnly: vector.mode === 'evaluate_only',
        approvals: (vector.approval_script ?? []).length > 0,
      }),
    )
    checkRun(vector.expect, { ...(await run(vector, policies, ran)), ran })
  })
})

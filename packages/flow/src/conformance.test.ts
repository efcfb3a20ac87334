import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type ChatRequest, createRuntime, isObject, type Json, type JsonObject, scripted } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { compileFlow } from './compile/compile.ts'
import { plainTool } from './compile/run.fixture.ts'
import { FlowError } from './faults/fault.ts'
import { type CheckedFlow, loadFlow } from './load.ts'

const corpus = process.env.SLUICE_CORPUS ?? fileURLToPath(new URL('../../../../shared/agent-spec', import.meta.url))
const suite = `${corpus}/conformance-suite`
const isThere = existsSync(`${suite}/cases.json`)
if (!isThere) console.warn('The conformance suite is not there; set SLUICE_CORPUS to the folder that has it.')

interface Rule {
  readonly when?: string
  readonly when_contains?: string
  readonly reply?: string | { readonly tool_call: { readonly name: string; readonly args: JsonObject } }
  readonly after_tool?: string
}
interface Expected {
  readonly outputs?: JsonObject
  readonly outputs_include?: JsonObject
  readonly final_contains?: readonly string[]
  readonly tools_called?: readonly string[]
}
type Step = { readonly start?: JsonObject; readonly user?: string; readonly run?: Expected }
interface Case {
  readonly id: string
  readonly document: string
  readonly model?: readonly Rule[]
  readonly server_tools?: Readonly<Record<string, JsonObject & { readonly fn?: string }>>
  readonly steps: readonly Step[]
}

const cases: readonly Case[] = isThere ? JSON.parse(readFileSync(`${suite}/cases.json`, 'utf8')).cases : []

/** The flow of a case; else why it cannot run here: the types that are not supported yet. */
async function flowOf({ document }: Case): Promise<CheckedFlow | string> {
  const text = readFileSync(`${suite}/${document}`, 'utf8').replaceAll(/\[\[\w+\]\]/g, 'http://model.invalid')
  try {
    return await loadFlow(text, { file: document })
  } catch (error) {
    if (!(error instanceof FlowError)) throw error
    const unsupported = error.faults.filter(({ code }) => code === 'FLOW_TYPE_UNSUPPORTED')
    const types = new Set(unsupported.map(({ message }) => /"(\w+)"/.exec(message)?.[1]))
    if (unsupported.length > 0) return [...types].toSorted().join(' and ')
    if (error.faults[0]?.code === 'FLOW_NOT_A_FLOW') return 'an Agent as the root, which speaks with a person'
    throw error
  }
}

const PEOPLE: Readonly<Record<string, readonly [string, string, string]>> = Object.fromEntries([
  ...['Alice', 'Jack', 'Bob', 'Steve'].map((name) => [name, ['No', 'USA', '1000']]),
  ...['Karim', 'Soufiane', 'Samir', 'Ayoub'].map((name) => [name, ['Yes', 'Morocco', '3000']]),
])
const known = (name: unknown) => PEOPLE[String(name)] ?? ['Unknown', 'Unknown', 'Unknown']
const list = (value: unknown) => value as readonly string[]

/** The tools that the suite registers, by the name that its documents give them. */
const TOOLS: Readonly<Record<string, (args: JsonObject) => unknown>> = {
  square_tool: ({ input }) => Number(input) ** 2,
  search_tool: ({ query }) => [query, ...known(query).slice(0, 2)],
  search_person_tool: ({ query_person: name }) => [name, ...known(name).slice(0, 2)],
  search_number_employees_tool: ({ search_person_results: found }) => [...list(found), known(list(found)[0])[2]],
  search_person_info_tool: (args) => [nameIn(args), ...known(nameIn(args)).slice(0, 2)],
  search_number_employees_info_tool: (args) => [nameIn(args), known(nameIn(args))[2]],
  merge_info_tool: (args) => {
    const [person, employees] = Object.values(args)
      .map(list)
      .toSorted((a, b) => b.length - a.length)
    return [...(person ?? []), employees?.[1]]
  },
}
const nameIn = (args: JsonObject): Json => Object.values(args)[0] as Json

/**
 * The suite's scripted model: rules are matched on what the user said. Where a case has none, it calls the one tool it is
 * offered, with what the user said, and finishes with what that gave.
 */
function answer(rules: readonly Rule[], { messages, tools, responseFormat }: ChatRequest) {
  const last = messages.at(-1)
  const said = String(last?.content)
  if (last?.role === 'tool') return finished(said, responseFormat)
  for (const { when, when_contains, reply } of rules) {
    const wanted = when ?? when_contains
    if (wanted === undefined || reply === undefined || !said.includes(wanted)) continue
    return typeof reply === 'string'
      ? reply
      : { tool_calls: [{ name: reply.tool_call.name, arguments: reply.tool_call.args }] }
  }
  const [only] = tools ?? []
  if (only === undefined) throw new Error(`no rule for "${said}"`)
  return { tool_calls: [{ name: only.name, arguments: said }] }
}

function finished(result: string, format: Json | undefined): string {
  const { schema } = (format ?? {}) as { readonly schema?: { readonly properties: JsonObject } }
  const [output] = Object.keys(schema?.properties ?? {})
  return output === undefined ? result : JSON.stringify({ [output]: JSON.parse(result) })
}

/** A flow has no conversation here: what the suite's user says before the run is the input that was left open. */
function inputOf({ steps }: Case, flow: CheckedFlow): JsonObject {
  const given = steps.find(({ start }) => start !== undefined)?.start ?? {}
  const said = steps.find(({ user }) => user !== undefined)?.user
  const open = flow.inputs.filter(({ title }) => !Object.hasOwn(given, title))
  return said !== undefined && open.length === 1 ? { ...given, [open[0]?.title ?? '']: said } : given
}

async function runCase(checked: Case, flow: CheckedFlow) {
  const called: string[] = []
  const model = scripted(
    Array.from({ length: 10 }, () => (request: ChatRequest) => answer(checked.model ?? [], request)),
  )
  const graph = await compileFlow(flow, {
    tool: (name: string) =>
      plainTool(name, (args) => {
        called.push(name)
        return TOOLS[name]?.(args)
      }),
    model: () => model,
  } as never)
  return { outputs: (await createRuntime().run(graph, inputOf(checked, flow))).state, called }
}

function check(expected: Expected, outputs: JsonObject, called: readonly string[]): void {
  if (expected.outputs !== undefined) expect(outputs).toEqual(expected.outputs)
  if (expected.outputs_include !== undefined) expect(outputs).toMatchObject(expected.outputs_include)
  for (const part of expected.final_contains ?? []) expect(JSON.stringify(outputs)).toContain(part)
  expect(called).toEqual(expect.arrayContaining([...(expected.tools_called ?? [])]))
}

describe.skipIf(!isThere)('the conformance suite of the Agent Specification', async () => {
  const ready = await Promise.all(cases.map(async (one) => ({ id: one.id, one, flow: await flowOf(one) })))
  const runnable = ready.flatMap(({ id, one, flow }) => (typeof flow === 'string' ? [] : [{ id, one, flow }]))
  const reasons = ready.flatMap(({ flow }) => (typeof flow === 'string' ? [flow] : []))
  if (isThere) {
    const [run, later] = [runnable.length, reasons.length]
    console.info(`conformance suite: ${cases.length} cases, ${run} are run, ${later} need what is not supported yet:`)
  }
  for (const reason of new Set(reasons)) {
    console.info(`  ${reasons.filter((other) => other === reason).length} cases: ${reason}`)
  }

  it.each(runnable)('$id', async ({ one, flow }) => {
    const { outputs, called } = await runCase(one, flow)
    for (const { run } of one.steps) if (isObject(run)) check(run, outputs, called)
  })

  it('has no case that was refused for another reason than a type', () => {
    expect(runnable.length).toBeGreaterThanOrEqual(33)
  })
})

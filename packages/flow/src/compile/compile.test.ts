import { createRuntime, type JsonObject } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { around, end, flowOf, load, start, text, tool, typed } from '../document.fixture.ts'
import { compileFlow } from './compile.ts'
import { compile, failureOf, outputsOf, plainTool, watching } from './run.fixture.ts'

const echo = { component_type: 'ToolNode', tool: tool('echo') }
const straight = (...nodes: readonly [object, object]) =>
  flowOf({ start: nodes[0] as never, end: nodes[1] as never }, ['start -> end'])

describe('a result that a policy gives for a flow', () => {
  const document = straight(start(text('a')), end(text('a')))
  const judging = (value: JsonObject) => ({
    input: { a: 'x' },
    policies: [watching(['run.after'], { 'run.after support': { action: 'replace', value } })],
  })

  it('is held to the outputs that the flow declares, and made of their types', async () => {
    expect(await outputsOf(document, judging({ a: 1 }))).toEqual({ a: '1' })
  })
  it.each([
    { name: 'lacks one', value: {}, says: 'output "a" of flow "support" has no value and no default' },
    { name: 'has one more', value: { a: 'x', b: 1 }, says: 'there is no output "b" of flow "support"' },
  ])("is that policy's failure when it $name", async ({ value, says }) => {
    expect(await failureOf(document, judging(value as JsonObject))).toContain(says)
  })
})

describe('the iterations of a flow', () => {
  const document = flowOf({ start: start(text('a')), echo, end: end() }, ['start -> echo', 'echo -> end'])
  const playing = (maxIterations: number) => ({
    input: { a: 'x' },
    tools: { echo: () => ({}) },
    limits: { maxIterations },
  })

  it('are its nodes, start and end included, and granted retries (A10)', async () => {
    expect(await outputsOf(document, playing(3))).toEqual({ a: 'x' })
    expect(await failureOf(document, playing(2))).toContain('exceeded max iterations: 2')
    let calls = 0
    const once = () => {
      if (++calls % 2 === 1) throw new Error('busy')
      return {}
    }
    const policies = () => [watching(['nodeError.after'], { 'nodeError.after echo': { action: 'retry' } })]
    const retried = (most: number) => ({ ...playing(most), tools: { echo: once }, policies: policies() })
    expect(await outputsOf(document, retried(4))).toEqual({ a: 'x' })
    expect(await failureOf(document, retried(3))).toContain('exceeded max iterations: 3, 1 of them retries')
  })
})

describe('what a flow takes', () => {
  const document = straight(
    start(text('a'), typed('n', 'integer', { default: 3 })),
    end(text('a'), typed('n', 'integer')),
  )

  it('is what its start declares, made of the types it declares', async () => {
    expect(await outputsOf(document, { input: { a: 1, n: 2.5 } })).toEqual({ a: '1', n: 2 })
  })
  it('may be left out where it has a default', async () => {
    expect(await outputsOf(document, { input: { a: 'x' } })).toEqual({ a: 'x', n: 3 })
  })
  it.each([
    { name: 'missing', input: {}, says: 'input "a" of flow "support" has no value and no default.' },
    {
      name: 'unknown',
      input: { a: 'x', b: 1 },
      says: 'there is no input "b" of flow "support"; there are: a, n.',
    },
    {
      name: 'of a type that it cannot become',
      input: { a: 'x', n: 'many' },
      says: 'input "n" of flow "support" must be integer, and a string cannot become that.',
    },
  ])('fails before anything runs when an input is $name', async ({ input, says }) => {
    expect(await failureOf(document, { input: input as JsonObject })).toBe(says)
  })
  it('is anything where its start declares nothing', async () => {
    const open = straight({ component_type: 'StartNode' }, { component_type: 'EndNode' })
    expect(await outputsOf(open, { input: { any: 'thing' } })).toEqual({ any: 'thing' })
  })
})

describe('what a flow yields', () => {
  it('is what the end declares, and nothing else', async () => {
    expect(
      await outputsOf(straight(start(text('a'), text('b')), end(text('b'))), { input: { a: '1', b: '2' } }),
    ).toEqual({
      b: '2',
    })
  })
  it('is every value produced, where none is declared', async () => {
    const open = flowOf(
      { start: start(text('a')), echo: { ...echo, outputs: [text('c')] }, end: { component_type: 'EndNode' } },
      ['start -> echo', 'echo -> end'],
    )
    expect(await outputsOf(open, { tools: { echo: () => ({ c: 'made', more: 1 }) }, input: { a: '1' } })).toEqual({
      a: '1',
      c: 'made',
    })
  })
  it('also when edges lead the values, and none to the end', async () => {
    const open = flowOf(
      { start: start(text('a')), echo: { ...echo, outputs: [text('c')] }, end: { component_type: 'EndNode' } },
      ['start -> echo', 'echo -> end'],
      { data: ['start.a -> echo.x'] },
    )
    expect(await outputsOf(open, { tools: { echo: ({ x }) => x }, input: { a: '1' } })).toEqual({ a: '1', c: '1' })
  })

  const ends = (more: object) =>
    flowOf(
      {
        start: start(text('way')),
        choose: { component_type: 'BranchingNode', mapping: { short: 'short' } },
        short: end(text('way')),
        long: end(text('way'), text('more', { default: 'all' })),
      },
      ['start -> choose', 'choose[short] -> short', 'choose[default] -> long'],
      {
        data: ['start.way -> choose.branching_mapping_key', 'start.way -> short.way', 'start.way -> long.way'],
        ...more,
      },
    )
  it('is what all ends have in common, where the flow declares nothing', async () => {
    expect(await outputsOf(ends({}), { input: { way: 'long' } })).toEqual({ way: 'long' })
  })
  it("is a flow's default where the end that was reached lacks an output", async () => {
    const declared = ends({ outputs: [text('way'), text('more', { default: 'none' })] })
    expect(await outputsOf(declared, { input: { way: 'short' } })).toEqual({ way: 'short', more: 'none' })
    expect(await outputsOf(declared, { input: { way: 'long' } })).toEqual({ way: 'long', more: 'all' })
  })
})

describe('a flow that the machine cannot run', () => {
  const using = (...names: readonly string[]) =>
    flowOf(
      Object.fromEntries([
        ['start', start()],
        ...names.map((name) => [name, { component_type: 'ToolNode', tool: tool(name) }]),
        ['end', end()],
      ]) as never,
      ['start', ...names].map((from, i) => `${from} -> ${names[i] ?? 'end'}`),
    )

  it('is refused with the name of every tool that is missing', async () => {
    await expect(compile(using('a', 'there', 'b'), { tools: { there: () => ({}) } })).rejects.toMatchObject({
      code: 'FLOW_TOOLS_MISSING',
      message: expect.stringContaining('nothing provides: "a", "b"; there are: there.'),
    })
  })
  it('also of the flows inside of it', async () => {
    const inner = flowOf({ in: start(), deep: { component_type: 'ToolNode', tool: tool('deep') }, out: end() }, [
      'in -> deep',
      'deep -> out',
    ])
    await expect(compile(around({ component_type: 'FlowNode', subflow: inner }))).rejects.toThrow('"deep"')
  })
  it('is refused when tools require confirmation, for nobody can be asked', async () => {
    const document = around({ component_type: 'ToolNode', tool: tool('pay', { requires_confirmation: true }) })
    await expect(compile(document, { tools: { pay: () => ({}) } })).rejects.toMatchObject({
      code: 'FLOW_CONFIRMATION',
      message: expect.stringContaining('"pay"'),
    })
  })
})

describe('a tool of a document', () => {
  it('may be a class on the machine', async () => {
    class Counter {
      readonly name = 'echo'
      readonly description = 'Counts.'
      readonly parameters = {}
      readonly source = 'code'
      readonly idempotent = true
      #n = 0
      readArguments(args: object) {
        return args as never
      }
      readResult(value: unknown) {
        return value as never
      }
      run() {
        return { n: ++this.#n }
      }
    }
    const machine = new Counter()
    const flow = await load(around({ ...echo, outputs: [typed('n', 'integer')] }))
    const parts = { tool: () => machine } as never
    expect((await createRuntime().run(await compileFlow(flow, parts))).state).toMatchObject({ n: 1 })
  })
})

it('a graph may run many times at once', async () => {
  const document = flowOf(
    {
      start: start(text('v')),
      choose: { component_type: 'BranchingNode', inputs: [text('v')], mapping: { left: 'left' } },
      left: end(text('l')),
      right: end(text('r')),
    },
    ['start -> choose', 'choose[left] -> left', 'choose[default] -> right'],
    {
      data: ['start.v -> choose.v', 'start.v -> left.l', 'start.v -> right.r'],
      outputs: [text('l', { default: '' }), text('r', { default: '' })],
    },
  )
  const graph = await compile(document)
  const runtime = createRuntime()
  const words = ['left', 'a', 'left', 'b']
  const ends = await Promise.all(words.map((v) => runtime.run(graph, { v })))
  expect(ends.map(({ state }) => state)).toEqual([
    { l: 'left', r: '' },
    { l: '', r: 'a' },
    { l: 'left', r: '' },
    { l: '', r: 'b' },
  ])
})

describe('a flow of 500 nodes', () => {
  it.each([
    { name: 'with data edges', edges: true },
    { name: 'by name', edges: false },
  ])('compiles and runs in reasonable time ($name)', async ({ edges }) => {
    const names = Array.from({ length: 500 }, (_, i) => `n${i}`)
    const through = ['start', ...names, 'end']
    const io = [typed('v', 'integer')]
    const document = flowOf(
      {
        start: start(...io),
        ...Object.fromEntries(
          names.map((name) => [
            name,
            { component_type: 'ToolNode', tool: { ...tool('next', { inputs: io, outputs: io }), id: `t-${name}` } },
          ]),
        ),
        end: end(...io),
      },
      through.slice(1).map((to, i) => `${through[i]} -> ${to}`),
      edges ? { data: through.slice(1).map((to, i) => `${through[i]}.v -> ${to}.v`) } : {},
    )
    const flow = await load(document)
    const next = plainTool('next', ({ v }) => ({ v: Number(v) + 1 }))
    const began = performance.now()
    const graph = await compileFlow(flow, { tool: () => next } as never)
    const compiled = performance.now()
    const runtime = createRuntime({ limits: { maxIterations: 600 } })
    expect((await runtime.run(graph, { v: 0 })).state).toEqual({ v: 500 })
    const ran = performance.now()
    expect(compiled - began).toBeLessThan(2_000)
    expect(ran - compiled).toBeLessThan(2_000)
  })
})

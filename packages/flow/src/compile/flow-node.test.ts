import type { JsonObject } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { end, flowOf, type Parts, start, text, tool, typed } from '../document.fixture.ts'
import { eventsOf, failureOf, outputsOf, play, watching } from './run.fixture.ts'

const ended = (branch_name: string, ...outputs: readonly object[]) => ({ ...end(...outputs), branch_name })
const called = (name: string, inputs: readonly object[], outputs: readonly object[]) => ({
  component_type: 'ToolNode',
  tool: tool(name, { inputs, outputs }),
})

/** Ends by branch `good` or `bad`. */
const judge = flowOf(
  {
    in: start(text('v')),
    pick: { component_type: 'BranchingNode', mapping: { fine: 'fine' } },
    good: ended('good', text('v')),
    bad: ended('bad', text('v')),
  },
  ['in -> pick', 'pick[fine] -> good', 'pick[default] -> bad'],
  { data: ['in.v -> pick.branching_mapping_key', 'in.v -> good.v', 'in.v -> bad.v'], name: 'judge', id: 'judging' },
)

const judged = flowOf(
  {
    start: start(text('word')),
    judge: { component_type: 'FlowNode', subflow: judge },
    yes: end(text('praise')),
    no: end(text('blame')),
  },
  ['start -> judge', 'judge[good] -> yes', 'judge[bad] -> no'],
  {
    data: ['start.word -> judge.v', 'judge.v -> yes.praise', 'judge.v -> no.blame'],
    outputs: [text('praise', { default: '' }), text('blame', { default: '' })],
  },
)

/** Squares its input. */
const square = flowOf(
  {
    in: start(typed('n', 'integer')),
    times: called('times', [typed('n', 'integer')], [typed('n', 'integer')]),
    out: end(typed('n', 'integer')),
  },
  ['in -> times', 'times -> out'],
  { name: 'square', id: 'square' },
)
const squared = flowOf(
  {
    start: start(typed('n', 'integer')),
    node: { component_type: 'FlowNode', subflow: square },
    end: end(typed('n', 'integer')),
  },
  ['start -> node', 'node -> end'],
)
const times = ({ n }: JsonObject) => Number(n) ** 2

describe('a flow node', () => {
  it.each([
    { name: 'one', word: 'fine', praise: 'fine', blame: '' },
    { name: 'the other', word: 'poor', praise: '', blame: 'poor' },
  ])('leaves by the branch of the end that was reached: $name', async ({ word, praise, blame }) => {
    expect(await outputsOf(judged, { input: { word } })).toEqual({ praise, blame })
  })

  it('takes the edge without a label for an end that has no branch of its own', async () => {
    const inner = flowOf(
      {
        in: start(text('v')),
        pick: { component_type: 'BranchingNode', inputs: [text('v')], mapping: { odd: 'odd' } },
        usual: end(text('v')),
        odd: ended('odd', text('v')),
      },
      ['in -> pick', 'pick[odd] -> odd', 'pick[default] -> usual'],
    )
    const document = flowOf(
      {
        start: start(text('v')),
        node: { component_type: 'FlowNode', subflow: inner },
        end: end(text('usually')),
        other: end(text('oddly')),
      },
      ['start -> node', 'node -> end', 'node[odd] -> other'],
      {
        data: ['start.v -> node.v', 'node.v -> end.usually', 'node.v -> other.oddly'],
        outputs: [text('usually', { default: '' }), text('oddly', { default: '' })],
      },
    )
    expect(await outputsOf(document, { input: { v: 'x' } })).toEqual({ usually: 'x', oddly: '' })
    expect(await outputsOf(document, { input: { v: 'odd' } })).toEqual({ usually: '', oddly: 'odd' })
  })

  it('needs no label for the only branch there is, and takes one', async () => {
    const one = (label: string) =>
      flowOf(
        {
          start: start(),
          inner: {
            component_type: 'FlowNode',
            subflow: flowOf({ in: start(), out: ended('done') }, ['in -> out'], { id: 'one' }),
          },
          end: end(),
        },
        ['start -> inner', `inner${label} -> end`],
      )
    for (const label of ['', '[done]']) expect((await play(one(label))).status).toBe('completed')
  })

  it('of one flow may stand twice: each run of it has values of its own', async () => {
    const twice = flowOf(
      {
        start: start(typed('n', 'integer')),
        once: { component_type: 'FlowNode', subflow: { $component_ref: 'square' } },
        again: { component_type: 'FlowNode', subflow: { $component_ref: 'square' } },
        end: end(typed('first', 'integer'), typed('second', 'integer')),
      },
      ['start -> once', 'once -> again', 'again -> end'],
      { data: ['start.n -> once.n', 'once.n -> again.n', 'once.n -> end.first', 'again.n -> end.second'] },
    )
    const shared = twice.$referenced_components as Record<string, unknown>
    shared.square = square
    expect(await outputsOf(twice, { tools: { times }, input: { n: 3 } })).toEqual({ first: 9, second: 81 })
  })

  it('hands everything to a flow that takes anything, and everything on that it yields', async () => {
    const open = flowOf(
      {
        in: { component_type: 'StartNode' },
        make: called('make', [], [text('made')]),
        out: { component_type: 'EndNode' },
      },
      ['in -> make', 'make -> out'],
      { id: 'open' },
    )
    const document = flowOf(
      {
        start: start(text('a')),
        inner: { component_type: 'FlowNode', subflow: open },
        end: end(text('b'), text('made')),
      },
      ['start -> inner', 'inner -> end'],
      { data: ['start.a -> inner.b', 'inner.b -> end.b', 'inner.made -> end.made'] },
    )
    expect(await outputsOf(document, { tools: { make: () => 'x' }, input: { a: '1' } })).toEqual({ b: '1', made: 'x' })
  })

  it('runs as a child: its events say the way to it', async () => {
    const events = await eventsOf(squared, {
      tools: { times },
      input: { n: 2 },
    })
    const inner = events.filter(({ path }) => path.length > 1)
    expect(inner.map((event) => event.type)).toEqual([
      'node_start',
      'node_complete',
      'node_start',
      'tool_call',
      'tool_result',
      'node_complete',
      'node_start',
      'node_complete',
    ])
    expect(new Set(inner.map(({ path }) => path.join(' / ')))).toEqual(new Set(['support / node / square']))
  })

  it('has the policies inside of it too, and they see that the run is nested', async () => {
    const watch = watching(['run.before', 'node.before', 'toolCall.before', 'run.after'])
    await outputsOf(squared, {
      tools: { times },
      input: { n: 2 },
      policies: [watch],
    })
    const shown = watch.seen.map(({ at, subject }) => {
      const { nodeName, graphName, nested, nodeType } = subject as Parts
      return `${at} ${nodeName === undefined ? `${graphName}${nested ? ', nested' : ''}` : `${nodeName} (${nodeType})`}`
    })
    expect(shown).toEqual([
      'run.before support',
      'node.before start (StartNode)',
      'node.before node (FlowNode)',
      'run.before square, nested',
      'node.before in (StartNode)',
      'node.before times (ToolNode)',
      'toolCall.before times (ToolNode)',
      'node.before out (EndNode)',
      'run.after square, nested',
      'node.before end (EndNode)',
      'run.after support',
    ])
  })

  it('leaves by its unlabelled edge when a policy replaced the result of its run: a result is not a route', async () => {
    const policies = [watching(['run.after'], { 'run.after judge': { action: 'replace', value: { v: 'poor' } } })]
    expect(await failureOf(judged, { input: { word: 'fine' }, policies })).toContain(
      'every edge is labelled (good, bad)',
    )
    const plain = { ...judged, control_flow_connections: [...judged.control_flow_connections.slice(0, 2), unlabelled] }
    expect(await outputsOf(plain, { input: { word: 'fine' }, policies })).toEqual({ praise: '', blame: 'poor' })
    expect(await outputsOf(plain, { input: { word: 'fine' } })).toEqual({ praise: 'fine', blame: '' })
  })

  it('fails when its run fails, with that very error, and is then a node like any other', async () => {
    const broken = new Error('the service is down')
    const playing = {
      tools: {
        times: () => {
          throw broken
        },
      },
      input: { n: 2 },
    }
    expect((await play(squared, playing)).error).toBe(broken)
    const policies = [watching(['nodeError.after'], { 'nodeError.after node': { action: 'replace', value: { n: 0 } } })]
    expect(await outputsOf(squared, { ...playing, policies })).toEqual({ n: 0 })
  })

  it('counts its own iterations', async () => {
    const playing = { tools: { times }, input: { n: 2 } }
    expect((await play(squared, { ...playing, limits: { maxIterations: 3 } })).state).toEqual({ n: 4 })
    expect(await failureOf(squared, { ...playing, limits: { maxIterations: 2 } })).toContain(
      'the run of "square" exceeded max iterations: 2',
    )
  })
})

const unlabelled = {
  component_type: 'ControlFlowEdge',
  name: 'unlabelled',
  from_node: { $component_ref: 'judge' },
  to_node: { $component_ref: 'no' },
}

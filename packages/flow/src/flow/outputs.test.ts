import { describe, expect, it } from 'vitest'
import { end, flowOf, load, type Parts, shortFaults, start, text, typed } from '../document.fixture.ts'

describe('the outputs of a flow', () => {
  const two = (first: object, second: object, more: Parts = {}) =>
    flowOf(
      {
        start: start(text('query')),
        route: { component_type: 'BranchingNode', inputs: [text('query')], mapping: { x: 'x' } },
        a: first as never,
        b: second as never,
      },
      ['start -> route', 'route[x] -> a', 'route[default] -> b'],
      more,
    )
  const outputsOf = async (document: unknown) => {
    const { outputs, openOutputs } = await load(document)
    return { titles: outputs.map(({ title }) => title), open: openOutputs }
  }

  it('are those it declares', async () =>
    expect(await outputsOf(two(end(text('a'), text('b')), end(text('a')), { outputs: [text('a')] }))).toEqual({
      titles: ['a'],
      open: false,
    }))

  it('else those that all its ends have', async () =>
    expect(await outputsOf(two(end(text('a'), text('b')), end(text('a'))))).toEqual({ titles: ['a'], open: false }))

  it.each([
    { name: 'none are declared and none in common', document: two(end(text('a')), end(text('b'))) },
    { name: 'an empty list is declared', document: two(end(text('a')), end(text('b')), { outputs: [] }) },
    { name: 'the ends declare nothing', document: two(end(), { component_type: 'EndNode' }) },
  ])('are every value produced, when $name', async ({ document }) =>
    expect(await outputsOf(document)).toEqual({ titles: [], open: true }),
  )

  it('must be at every end, or have a default', async () => {
    expect(await shortFaults(two(end(text('a')), end(text('b')), { outputs: [text('a')] }))).toEqual([
      'FLOW_OUTPUT_MISSING $.outputs[0]',
    ])
    expect(await shortFaults(two(end(text('a')), end(text('b')), { outputs: [text('a', { default: '' })] }))).toEqual(
      [],
    )
  })

  it('have one type at every end', async () =>
    expect(await shortFaults(two(end(text('a')), end(typed('a', 'integer'))))).toEqual([
      'FLOW_OUTPUT_TYPE $.$referenced_components.b',
    ]))

  it('have a type that the ends can become', async () =>
    expect(await shortFaults(two(end(text('a')), end(text('a')), { outputs: [typed('a', 'integer')] }))).toEqual([
      'FLOW_PORT_TYPE $.outputs[0]',
    ]))
})

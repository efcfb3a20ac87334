import fc from 'fast-check'
import { describe, it } from 'vitest'
import { agent, end, faultsOf, flowOf, llm, pluginTypes, ref, start, text, tool } from './document.fixture.ts'

const inner = flowOf({ s: start(text('query')), e: end(text('query')) }, ['s -> e'], { id: 'inner' })
const document = flowOf(
  {
    start: start(text('query')),
    route: { component_type: 'BranchingNode', inputs: [text('query')], mapping: { a: 'left' } },
    ask: {
      component_type: 'LlmNode',
      llm_config: llm({ default_generation_parameters: { top_p: 1 } }),
      prompt_template: '{{query}}',
    },
    think: {
      component_type: 'AgentNode',
      agent: agent({
        tools: [tool('t'), ref('shared')],
        transforms: [{ component_type: 'Redact', name: 'r', words: [ref('word')] }],
      }),
    },
    sub: { component_type: 'FlowNode', subflow: inner },
    end: end(text('query')),
  },
  ['start -> route', 'route[left] -> ask', 'route[default] -> think', 'ask -> sub', 'sub -> end', 'think -> end'],
  {
    data: [
      'start.query -> route.query',
      'start.query -> ask.query',
      'start.query -> sub.query',
      'sub.query -> end.query',
    ],
  },
)
Object.assign(document.$referenced_components, { shared: tool('shared'), word: 'x' })

const plugins = pluginTypes({
  Redact: {
    kind: 'transform',
    plugin: 'p',
    version: '1.0.0',
    schema: { type: 'object', properties: { words: { type: 'array' } } },
  },
})

type Place = readonly [holder: Record<string, unknown>, key: string]

function placesIn(value: unknown): Place[] {
  if (typeof value !== 'object' || value === null) return []
  const holder = value as Record<string, unknown>
  return Object.keys(holder).flatMap((key): Place[] => [[holder, key], ...placesIn(holder[key])])
}

const count = placesIn(document).length
const someValue = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    ref('start'),
    ref('inner'),
    ref('word'),
    ref('nobody'),
    agent(),
    tool('x'),
    start(),
    text('query'),
    inner,
    [],
    {},
    null,
    '',
  ),
)

describe('whatever a document holds', () => {
  it('it loads, or every fault has a code, a path and a position', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(count - 1), fc.option(someValue, { nil: undefined })), { minLength: 1, maxLength: 3 }),
        fc.constantFrom('json' as const, 'yaml' as const),
        async (changes, format) => {
          const changed = structuredClone(document)
          const places = placesIn(changed)
          for (const [at, value] of changes) {
            const [holder, key] = places[at] as Place
            if (value === undefined && !Array.isArray(holder)) delete holder[key]
            else holder[key] = value ?? null
          }
          const faults = await faultsOf(changed, { plugins, format })
          return faults.every(
            ({ code, path, line, column }) =>
              /^FLOW_[A-Z_]+$/.test(code) && path.startsWith('$') && line === 1 && column >= 1,
          )
        },
      ),
      { numRuns: 300 },
    )
  })

  it('text that is no document is refused without a crash', async () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ':',
      ',',
      '"',
      "'",
      '- ',
      '\n',
      '  ',
      'a',
      '*a',
      '&a ',
      '!t ',
      '? ',
      '| ',
      '> ',
      '#',
      '%',
      '\\',
      '0',
      '---\n',
      '\t',
      '$component_ref',
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { maxLength: 30 }),
        fc.constantFrom('json' as const, 'yaml' as const),
        async (pieces, format) => {
          const faults = await faultsOf(pieces.join(''), { format })
          return faults.length > 0
        },
      ),
      { numRuns: 1_000 },
    )
  })
})

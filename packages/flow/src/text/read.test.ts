import { describe, expect, it } from 'vitest'
import { faultsOf, flowOf, load, shortFaults, shortWarnings, start } from '../document.fixture.ts'

const codesOf = async (text: string, options = {}) => (await faultsOf(text, options)).map(({ code }) => code)
const positionsOf = async (text: string) => (await faultsOf(text)).map(({ line, column }) => `${line}:${column}`)

const trivial = flowOf({ start: start(), end: { component_type: 'EndNode' } }, ['start -> end'])
const json = JSON.stringify(trivial)

describe('the format of a text', () => {
  it.each([
    { name: 'JSON by its first character', text: json, options: {} },
    { name: 'JSON by its extension', text: json, options: { file: 'flow.json' } },
    { name: 'YAML takes JSON too', text: json, options: { file: 'flow.yaml' } },
    { name: 'JSON behind a byte order mark', text: `\uFEFF${json}`, options: {} },
    { name: 'an extension nobody claims, by its first character', text: json, options: { file: 'flow.txt' } },
  ])('$name', async ({ text, options }) => expect((await load(text, options)).start).toBe('start'))

  it('N7: refuses a format it does not know, and lists those it does', async () => {
    const [fault] = await faultsOf(json, { format: 'toml' as 'json' })
    expect(fault).toMatchObject({ code: 'FLOW_FORMAT', message: expect.stringContaining('json, yaml') })
  })
})

describe('JSON that is none', () => {
  it.each([
    { name: 'nothing', text: '', format: 'json', at: '1:1', says: 'the text ends' },
    { name: 'a comma too many', text: '{\n  "a": 1,\n}', at: '3:1', says: 'a key in double quotes' },
    { name: 'a list with a comma too many', text: '{"a": [1,]}', at: '1:10', says: 'a value' },
    { name: 'an object that is not closed', text: '{"a": {"b": 1}', at: '1:15', says: '"," or "}"' },
    { name: 'single quotes', text: "{'a': 1}", at: '1:2', says: 'there is "\'"' },
    { name: 'a line break in a string', text: '{"a": "x\ny"}', at: '1:9', says: 'no line break' },
    { name: 'an unknown escape', text: '{"a": "\\x"}', at: '1:8', says: 'escape' },
    { name: 'more after the end', text: '{} {}', at: '1:4', says: 'the end of the document' },
    { name: 'a number with a leading zero', text: '{"a": 01}', at: '1:8', says: '"," or "}"' },
  ])('$name: says where and what is expected', async ({ text, format = 'json', at, says }) => {
    const [fault] = await faultsOf(text, { format: format as 'json' })
    expect(fault).toMatchObject({ code: 'FLOW_SYNTAX', message: expect.stringContaining(says) })
    expect(`${fault?.line}:${fault?.column}`).toBe(at)
  })
})

describe('YAML that is none', () => {
  it.each([
    { name: 'a list not closed', text: 'a: [1, 2\nb: 3' },
    { name: 'a tab as indentation', text: 'a:\n\tb: 1' },
    { name: 'two documents', text: 'a: 1\n---\nb: 2' },
    { name: 'a tag', text: 'a: !python/object x' },
    { name: 'an object as a key', text: '? {a: 1}\n: 2' },
  ])('$name', async ({ text }) => expect(await codesOf(text)).toContain('FLOW_SYNTAX'))
})

describe('limits', () => {
  it('reads at most 4 MiB', async () => {
    expect(await codesOf(`{"a": "${'x'.repeat(10 * 1024 * 1024)}"}`)).toEqual(['FLOW_TOO_LARGE'])
    expect(await codesOf(`{"a": "${'ß'.repeat(3 * 1024 * 1024)}"}`)).toEqual(['FLOW_TOO_LARGE'])
  })

  it.each([
    { name: 'JSON lists', text: `{"a": ${'['.repeat(10_000)}${']'.repeat(10_000)}}` },
    { name: 'JSON objects', text: `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}` },
    { name: 'JSON that is not closed', text: '{"a":'.repeat(10_000) },
    { name: 'YAML in brackets', text: `a: ${'['.repeat(10_000)}${']'.repeat(10_000)}` },
    { name: 'YAML dashes', text: `a:\n${'- '.repeat(10_000)}x` },
    { name: 'YAML by indentation', text: Array.from({ length: 1_000 }, (_, i) => `${' '.repeat(i)}a:`).join('\n') },
    { name: 'YAML through aliases', text: `a0: &a0 ${nested(100, 'x')}\na1: &a1 ${nested(100, '*a0')}` },
  ])('nests at most 128 levels: $name', async ({ text }) => expect(await codesOf(text)).toEqual(['FLOW_TOO_DEEP']))

  it('takes 128 levels', async () => {
    expect(await codesOf(`{"a": ${nested(127, '1')}}`)).toEqual(['FLOW_TYPE_MISSING'])
    expect(await codesOf(`a: ${nested(127, '1')}`)).toEqual(['FLOW_TYPE_MISSING'])
  })

  it.each([
    { name: 'many', text: `a: &a 1\nb: [${'*a, '.repeat(101)}]` },
    {
      name: 'expanding',
      text: Array.from({ length: 9 }, (_, i) => `l${i}: &l${i} [${`*l${i - 1}, `.repeat(i && 9)}1]`).join('\n'),
    },
    { name: 'to nothing', text: 'a: *b' },
    { name: 'into itself', text: 'a: &a {b: *a}' },
  ])('expands at most 100 YAML aliases: $name', async ({ text }) => expect(await codesOf(text)).toEqual(['FLOW_ALIAS']))

  it('has no number beyond the finite', async () => {
    expect(await shortFaults('{"a": [1, 1e999]}')).toEqual(['FLOW_NUMBER $.a[1]'])
    expect(await shortFaults('a: .nan')).toEqual(['FLOW_NUMBER $.a'])
  })
})

function nested(levels: number, core: string): string {
  return `${'['.repeat(levels)}${core}${']'.repeat(levels)}`
}

describe('keys', () => {
  it.each([
    { name: 'JSON', text: '{"name": "a", "component_type": "StartNode", "name": "b"}' },
    { name: 'JSON, written with an escape', text: '{"name": "a", "component_type": "StartNode", "n\\u0061me": "b"}' },
    { name: 'YAML', text: 'name: a\ncomponent_type: StartNode\nname: b' },
  ])('may not stand twice: $name', async ({ text }) =>
    expect(await shortFaults(text)).toEqual(['FLOW_KEY_TWICE $.name']),
  )

  it('1 and "1" are the same key (C14)', async () =>
    expect(await shortFaults('component_type: StartNode\nname: a\nmetadata: {1: a, "1": b}')).toEqual([
      'FLOW_KEY_TWICE $.metadata["1"]',
    ]))

  it.each(['__proto__', 'constructor', 'prototype'])('may not be "%s", anywhere', async (key) => {
    const path = `FLOW_KEY_FORBIDDEN $.metadata.${key}`
    expect(await shortFaults(`{"metadata": {"${key}": {}}}`)).toEqual([path])
    expect(await shortFaults(`metadata: {${key}: {}}`)).toEqual([path])
  })

  it('of YAML may not merge', async () => {
    expect(await codesOf('a: &a {b: 1}\nc:\n  <<: *a')).toContain('FLOW_YAML_MERGE')
  })
})

describe('a fault', () => {
  const document = {
    component_type: 'StartNode',
    name: 'start',
    inputs: [{ title: 'a' }, { title: 'two words' }],
    nme: 'x',
  }

  it('knows its line in JSON', async () => {
    expect(await positionsOf(JSON.stringify(document, null, 2))).toEqual(['8:5'])
  })

  it('knows its line in YAML', async () => {
    expect(
      await positionsOf('component_type: StartNode\nname: start\ninputs:\n  - title: a\n  - title: two words\n'),
    ).toEqual(['5:5'])
  })

  it('about a key points at the key', async () => {
    const [warning] = (
      await load(flowOf({ start: start(), end: { component_type: 'EndNode', colour: 1 } }, ['start -> end']))
    ).warnings
    expect(warning).toMatchObject({ code: 'FLOW_FIELD_UNKNOWN', path: '$.$referenced_components.end.colour' })
    expect(json.slice(0, warning?.column)).not.toContain('colour')
  })

  it('about something missing points at what should have it', async () => {
    expect(
      await positionsOf(
        'component_type: Agent\nname: a\nllm_config:\n  component_type: OpenAiConfig\n  name: b\nsystem_prompt: c',
      ),
    ).toEqual(['4:3'])
  })
})

describe('YAML 1.2 and other YAML', () => {
  const flow = (scalar: string) => `${json.slice(0, -1)}, "metadata": {"a": ${scalar}}}`

  it.each(['yes', 'No', 'on', 'OFF', '012', '2026-11-30', '12:30'])('warns of %s without quotes', async (scalar) => {
    expect(await shortWarnings(flow(scalar), { format: 'yaml' })).toEqual(['FLOW_YAML_SCALAR $.metadata.a'])
  })

  it.each(['"yes"', 'true', '12', '0', '1.5', 'yesterday', '0.5'])('does not warn of %s', async (scalar) => {
    expect(await shortWarnings(flow(scalar), { format: 'yaml' })).toEqual([])
  })

  it('reads yes as text', async () => {
    const flow = await load(
      flowOf(
        {
          start: start({ title: 'ok', type: 'string' }),
          branch: {
            component_type: 'BranchingNode',
            inputs: [{ title: 'ok', type: 'string' }],
            mapping: { yes: 'yes' },
          },
          end: { component_type: 'EndNode' },
        },
        ['start -> branch', 'branch[yes] -> end', 'branch[default] -> end'],
      ),
      { format: 'yaml' },
    )
    expect(flow.nodes.find(({ name }) => name === 'branch')?.branches).toEqual(['yes', 'default'])
  })
})

import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import {
  type Json,
  middleware,
  node,
  type Schema,
  state,
  type Tool,
  type ToolContext,
  tool,
  toolTable,
} from '../index.ts'
import { parseToolArguments } from './tool.ts'

const Input = z.object({ order: z.string(), times: z.coerce.number().default(1) })
const refund = tool('refund', { description: 'Pays money back.', input: Input, run: ({ order }) => ({ order }) })

describe('a tool', () => {
  it('tells a model its name, its description and its arguments as JSON Schema', () => {
    expect(refund).toMatchObject({ name: 'refund', description: 'Pays money back.', source: 'code', idempotent: false })
    expect(refund.parameters).toMatchObject({
      type: 'object',
      properties: { order: { type: 'string' }, times: { default: 1 } },
      required: ['order'],
    })
  })
  it('reads its arguments by its schema: defaults filled in, types turned', () => {
    expect(refund.readArguments({ order: 'a' })).toEqual({ order: 'a', times: 1 })
    expect(refund.readArguments({ order: 'a', times: '3' })).toEqual({ order: 'a', times: 3 })
  })
  it('I11: leaves it to its schema whether an argument that it does not know is dropped or refused', () => {
    const strict = tool('strict', { description: 'd', input: z.strictObject({ order: z.string() }), run: () => 1 })
    expect(refund.readArguments({ order: 'a', colour: 'red' })).toEqual({ order: 'a', times: 1 })
    expect(() => strict.readArguments({ order: 'a', colour: 'red' })).toThrow('Unrecognized key: "colour"')
  })
  it('says what is wrong with its arguments in words a model can act on', () => {
    expect(() => refund.readArguments({ order: 7 })).toThrow(
      'the arguments of tool "refund" does not fit its schema: order: Invalid input: expected string, received number',
    )
  })
  it('has its result validated by its output schema, where it has one', () => {
    const typed = tool('typed', {
      description: 'd',
      input: Input,
      output: z.object({ n: z.number() }),
      run: () => ({ n: 1 }),
    })
    expect(typed.readResult({ n: 2, more: 'dropped' })).toEqual({ n: 2 })
    expect(() => typed.readResult({ n: 'two' })).toThrow('the result of tool "typed" does not fit its schema')
  })
  it('has a result of JSON in any case: nothing is null, and what is no JSON is refused', () => {
    expect(refund.readResult(undefined)).toBeNull()
    expect(() => refund.readResult({ at: new Date(0) })).toThrow('the result of tool "refund" is not JSON at at')
  })
  it('may come with a JSON Schema of its arguments where its validator cannot tell one', () => {
    const bare: Schema = { '~standard': { version: 1, vendor: 'mine', validate: (value) => ({ value }) } }
    const parameters = { type: 'object' }
    expect(tool('bare', { description: 'd', input: bare, parameters, run: () => 1 }).parameters).toEqual(parameters)
    expect(() => tool('bare', { description: 'd', input: bare, run: () => 1 })).toThrow(
      'the input schema of tool "bare" cannot be told as JSON Schema; give "parameters" too.',
    )
  })
  it.each([
    { name: 'a space', toolName: 'send mail' },
    { name: 'nothing', toolName: '' },
    { name: '65 characters', toolName: 'x'.repeat(65) },
    { name: 'another script', toolName: 'перевод' },
  ])('has a name that every model takes: $name is refused', ({ toolName }) => {
    expect(() => tool(toolName, { description: 'd', input: Input, run: () => 1 })).toThrow(
      expect.objectContaining({
        code: 'TOOL_CONFIG',
        message: expect.stringContaining('use letters, digits, "_" and "-", at most 64'),
      }),
    )
  })
  it('I9: needs a description, for the model chooses by it', () => {
    expect(() => tool('mute', { description: ' ', input: Input, run: () => 1 })).toThrow(
      'tool "mute" needs a description',
    )
  })
})

describe('the arguments a model wrote', () => {
  it.each([
    { text: '{"a":[1]}', args: { a: [1] } },
    { text: '', args: {} },
    { text: ' \n', args: {} },
  ])('$text are read as $args', ({ text, args }) => {
    expect(parseToolArguments(text)).toEqual(args)
  })
  it.each([
    { name: 'broken JSON', text: '{"a":', says: /^the arguments are no JSON \(.+\): \{"a":$/ },
    { name: 'a list', text: '[1]', says: /^the arguments are no JSON object: \[1\]$/ },
    { name: 'null', text: 'null', says: /^the arguments are no JSON object: null$/ },
  ])('$name is refused, and quoted', ({ text, says }) => {
    expect(() => parseToolArguments(text)).toThrow(
      expect.objectContaining({ code: 'TOOL_ARGUMENTS', message: expect.stringMatching(says) }),
    )
  })
  it('are quoted up to 200 characters', () => {
    expect(() => parseToolArguments(`"${'x'.repeat(500)}`)).toThrow(/: "x{199}…$/)
  })
  it('cannot set a prototype', () => {
    expect(() => parseToolArguments('{"__proto__":{"admin":true}}')).toThrow('a key named __proto__ is refused')
  })
})

describe('a table of tools', () => {
  it('finds each by its name', () => {
    expect(toolTable([refund]).get('refund')).toBe(refund)
  })
  it('has no two of one name; the error says where both came from', () => {
    const other: Tool = { ...refund, source: 'plugin:pay' }
    expect(() => toolTable([refund, other])).toThrow(
      expect.objectContaining({
        code: 'TOOL_DUPLICATE',
        message: 'two tools are named "refund" (code and plugin:pay); rename one.',
      }),
    )
  })
})

describe('types of a tool', () => {
  it('its function is given what the schema puts out', () => {
    tool('typed', {
      description: 'd',
      input: Input,
      run: (args, ctx) => {
        expectTypeOf(args).toEqualTypeOf<{ order: string; times: number }>()
        expectTypeOf(ctx).toEqualTypeOf<ToolContext>()
      },
    })
  })
  it('its function returns what the output schema takes', () => {
    const output = z.object({ n: z.number() })
    tool('typed', { description: 'd', input: Input, output, run: async () => ({ n: 1 }) })
    // @ts-expect-error the output schema asks for a number
    tool('typed', { description: 'd', input: Input, output, run: () => ({ n: 'one' }) })
    expectTypeOf(refund.readResult).returns.toEqualTypeOf<Json>()
  })
  it('a node calls it with what its input takes, and gets what its output makes', () => {
    const price = tool('price', {
      description: 'd',
      input: z.object({ item: z.string(), times: z.number().default(1) }),
      output: z.object({ cents: z.number() }),
      run: () => ({ cents: 1 }),
    })
    const maybe = tool('maybe', { description: 'd', input: Input, output: z.string().optional(), run: () => undefined })
    const elsewhere: Tool = { ...price, source: 'plugin:shop' }
    node('calls', state({ n: z.number() }), async (_s, ctx) => {
      expectTypeOf(await ctx.callTool(price, { item: 'tea' })).toEqualTypeOf<{ cents: number }>()
      expectTypeOf(await ctx.callTool(maybe, { order: 'a' })).toEqualTypeOf<string | null>()
      expectTypeOf(await ctx.callTool(refund, { order: 'a' })).toEqualTypeOf<Json>()
      expectTypeOf(await ctx.callTool('price', { whatever: true })).toEqualTypeOf<Json>()
      expectTypeOf(await ctx.callTool(elsewhere, { whatever: true })).toEqualTypeOf<Json>()
      // @ts-expect-error the item is a text
      await ctx.callTool(price, { item: 7 })
      // @ts-expect-error there must be an item
      await ctx.callTool(price, {})
      // @ts-expect-error arguments are an object
      await ctx.callTool('price', 'tea')
    })
  })
  it('so does a hook', () => {
    const beside = tool('beside', { description: 'd', input: Input, output: z.number(), run: () => 1 })
    middleware({
      name: 'calls',
      beforeTool: async (ctx) => {
        expectTypeOf(await ctx.callTool(beside, { order: 'a' })).toEqualTypeOf<number>()
        // @ts-expect-error the order is a text
        await ctx.callTool(beside, { order: 7 })
      },
    })
  })
})

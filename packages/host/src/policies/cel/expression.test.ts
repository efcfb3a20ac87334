import { describe, expect, it } from 'vitest'
import { compileExpression, ExpressionFault, MAX_STEPS, type Values } from './expression.ts'
import type { Site } from './shown.ts'

const BEFORE: Site = { seam: 'toolCall', half: 'before', use: 'rule' }
const AFTER: Site = { ...BEFORE, half: 'after' }
const MODEL: Site = { seam: 'modelCall', half: 'before', use: 'rule' }
const ROUND: Site = { seam: 'agentRound', half: 'before', use: 'rule' }

const VALUES: Values = {
  subject: {
    nodeName: 'agent',
    nodeType: 'AgentNode',
    toolName: 'shell',
    toolCallId: 'c',
    caller: 'model',
    source: 'code',
  },
  labels: ['untrusted'],
  input: { cmd: 'rm -rf /', amount: 100, round: 2, maxRounds: 3, messages: [{ role: 'user', content: 'hello' }] },
  outcome: { ok: false, error: { name: 'Error', message: '429 Too Many Requests' } },
  attempt: 1,
  maxAttempts: 3,
  substituted: '',
}

const compile = (text: string, site: Site = BEFORE, wants: 'bool' | 'any' = 'bool') =>
  compileExpression(text, [site], wants, '"when" of rule "r"')

function faultOf(text: string, site?: Site): { message: string; index: number } {
  try {
    compile(text, site)
  } catch (fault) {
    if (fault instanceof ExpressionFault) return { message: fault.message, index: fault.index }
    throw fault
  }
  throw new Error('it was taken')
}

describe('an expression', () => {
  it.each([
    { text: 'subject.toolName == "shell"', site: BEFORE },
    { text: '"untrusted" in labels', site: BEFORE },
    { text: 're(input.cmd, "rm -rf|sudo")', site: BEFORE },
    { text: '!re(input.cmd, "^sudo")', site: BEFORE },
    { text: 'input.amount == 100 && input.amount > 99.5 && input.amount in [1, 100]', site: BEFORE },
    { text: 'has(input.cmd) && !has(input.path)', site: BEFORE },
    { text: 'input.cmd.startsWith("rm") && size(input.cmd) == 8', site: BEFORE },
    { text: 'input.messages.exists(m, m.role == "user" && m.content.contains("ell"))', site: MODEL },
    { text: 'input.messages.all(m, m.role in ["user", "tool"])', site: MODEL },
    { text: 'input.round + 1 >= input.maxRounds', site: ROUND },
    { text: 'input.round == 2', site: ROUND },
    { text: '!outcome.ok && outcome.error.message.startsWith("429") && attempt < maxAttempts', site: AFTER },
    { text: 'cel.bind(half, input.amount / 2, half == 50)', site: BEFORE },
    { text: 'substituted == ""', site: BEFORE },
  ])('may say $text', ({ text, site }) => expect(compile(text, site).evaluate(VALUES)).toBe(true))

  it('may give any value where no yes or no is wanted', () => {
    expect(compile('{"to": [input.cmd, input.amount], "n": null}', BEFORE, 'any').evaluate(VALUES)).toEqual({
      to: ['rm -rf /', 100],
      n: null,
    })
  })
})

describe('an expression is refused at load, at its place', () => {
  it.each([
    { text: 'input.cmd ==', why: 'Unexpected token: EOF', index: 12 },
    { text: 'input.cmd == "a" && path', why: 'there is no "path" at toolCall.before', index: 20 },
    { text: 'outcome.ok', why: 'an expression here reads: subject, labels, input, attempt', index: 0 },
    { text: 'subject.tolName == "a"', why: '"subject" has no "tolName" at toolCall; it has: nodeName', index: 8 },
    { text: 'subject.toolName > 3', why: 'no such overload: string > int', index: 0 },
    { text: 'input.cmd.matches("(a+)+$")', why: 'write re(text, "pattern") instead', index: 10 },
    { text: 're(input.cmd, "(a")', why: 'this is no pattern', index: 14 },
    { text: 're(input.cmd, input.pattern)', why: 'must stand there as a text', index: 14 },
    { text: 're(input.cmd)', why: 'no matching overload', index: 0 },
    { text: '"yes"', why: 'it must say true or false and gives a value of type string', index: 0 },
    { text: '__counted(input.list)', why: 'no matching overload', index: 0 },
    {
      text: 'input.a.all(a, input.b.all(b, input.c.all(c, input.d.all(d, a == d))))',
      why: 'more than 3 loops inside of each other',
      index: 45,
    },
  ])('$text', ({ text, why, index }) => {
    const fault = faultOf(text)
    expect(fault.message).toContain(why)
    expect(fault.index).toBe(index)
  })
  it.each([
    { text: 'input.mesages.size() > 3', site: MODEL, field: 'mesages' },
    { text: 'input.messages.exists(m, m.rle == "tool")', site: MODEL, field: 'rle' },
    { text: 'input.rounds > 3', site: ROUND, field: 'rounds' },
  ])('a misspelt field where the fields are known: $text', ({ text, site, field }) => {
    expect(faultOf(text, site).message).toBe(`there is no field "${field}" here`)
  })
  it('what a selector does not have: it is decided before an attempt', () => {
    expect(faultOf('attempt < 2', { ...BEFORE, use: 'match' }).message).toContain('there is no "attempt"')
  })
  it('where one of several halves does not show what it reads', () => {
    const halves = [BEFORE, { ...BEFORE, seam: 'nodeError', half: 'after' } as const]
    expect(() => compileExpression('input.cmd == "a"', halves, 'bool', 'it')).toThrow('no "input" at nodeError.after')
  })
})

describe('an expression that cannot be evaluated', () => {
  it.each([
    { text: 'input.path == "a"', why: 'there is no field "path" in what it reads' },
    { text: 'input.cmd + 1 == 2', why: 'no such overload: dyn<string> + int' },
    { text: 'int(input.cmd) == 1', why: 'int conversion error' },
    { text: 'input[input.cmd] == 1', why: 'no such key' },
  ])('says why, and holds no value: $text', ({ text, why }) => {
    const { evaluate } = compile(text)
    expect(() => evaluate(VALUES)).toThrow(`"when" of rule "r" cannot be evaluated: ${why}.`)
    expect(() => evaluate(VALUES)).not.toThrow(/rm -rf/)
  })
})

describe('what an expression costs', () => {
  const list = Array.from({ length: 1_000 }, (_, i) => i)
  const nested = 'input.list.all(a, input.list.all(b, a + b >= 0))'

  it('is bounded: so many elements, all loops together', () => {
    const { evaluate } = compile(nested)
    expect(() => evaluate({ ...VALUES, input: { list } })).toThrow(`more than ${MAX_STEPS} elements`)
    expect(evaluate({ ...VALUES, input: { list: list.slice(0, 300) } })).toBe(true)
  })
  it('counts lists that are searched inside of loops', () => {
    const { evaluate } = compile('input.list.all(a, a in input.list)')
    expect(() => evaluate({ ...VALUES, input: { list } })).toThrow('elements')
  })
  it('counts long texts that are searched by a pattern', () => {
    const { evaluate } = compile('input.list.exists(a, re(input.text, "x$"))')
    expect(() => evaluate({ ...VALUES, input: { list, text: 'a'.repeat(100_000) } })).toThrow('elements')
  })
  it('begins anew each time', () => {
    const { evaluate } = compile(nested)
    for (let i = 0; i < 5; i++) expect(evaluate({ ...VALUES, input: { list: list.slice(0, 300) } })).toBe(true)
  })
  it('does not explode with a pattern that does so elsewhere', () => {
    const { evaluate } = compile('re(input.text, "^(a+)+$")')
    expect(evaluate({ ...VALUES, input: { text: `${'a'.repeat(50_000)}b` } })).toBe(false)
  })
})

describe('whether an expression reads no more than the call site', () => {
  it.each([
    { text: 'subject.toolName == "shell" && subject.source != "code"', only: true },
    { text: 'true', only: true },
    { text: '["a", "b"].exists(input, input == subject.toolName)', only: true },
    { text: 'subject.toolCallId == "c"', only: false },
    { text: '[subject].size() == 1', only: false },
    { text: 'subject.toolName == "shell" && labels.size() == 0', only: false },
    { text: 'input.cmd == subject.toolName', only: false },
  ])('$text: $only', ({ text, only }) => expect(compile(text).readsSiteOnly).toBe(only))
})

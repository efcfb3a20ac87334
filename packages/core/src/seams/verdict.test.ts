import { describe, expect, it } from 'vitest'
import { isOwn } from '../json/own.ts'
import { admits, HALVES, SEAM_NAMES } from './table.ts'
import { NotAVerdict, readVerdict } from './verdict.ts'

/** Every member that some verdict needs. */
const WHOLE = { input: { a: 1 }, value: 'v', reason: 'because', ask: { q: '?' }, delayMs: 10 }

const MEMBERS: { readonly [action: string]: object } = {
  proceed: {},
  pass: {},
  modify: { input: { a: 1 } },
  replace: { value: 'v' },
  reject: { reason: 'because' },
  fail: { reason: 'because' },
  suspend: { ask: { q: '?' } },
  retry: { delayMs: 10 },
}

const halves = SEAM_NAMES.flatMap((seam) => HALVES.map((half) => ({ seam, half, admitted: admits(seam, half) })))

describe('reading a verdict', () => {
  it.each(halves)('at $seam.$half, it admits: $admitted', ({ seam, half, admitted }) => {
    for (const [action, members] of Object.entries(MEMBERS)) {
      const read = () => readVerdict(seam, half, { action, ...WHOLE })
      if (admitted.includes(action as never)) expect(read()).toEqual({ action, ...members })
      else expect(read).toThrow(`"${action}", which ${seam}.${half} does not admit; it admits: ${admitted.join(', ')}`)
    }
  })

  it('leaves unknown members out, and what it takes over is copied and frozen', () => {
    const input = { list: [1] }
    const verdict = readVerdict('toolCall', 'before', { action: 'modify', input, mood: 'good' }) as { input: object }
    expect(verdict).toEqual({ action: 'modify', input })
    expect(verdict.input).not.toBe(input)
    expect(isOwn(verdict.input)).toBe(true)
  })

  it.each([
    { name: 'a delay', delayMs: 0, reads: { action: 'retry', delayMs: 0 } },
    { name: 'no delay', delayMs: undefined, reads: { action: 'retry' } },
    { name: 'null, as other languages write none', delayMs: null, reads: { action: 'retry' } },
  ])('a retry may bring $name', ({ delayMs, reads }) => {
    expect(readVerdict('modelCall', 'after', { action: 'retry', delayMs })).toEqual(reads)
  })

  it('takes remarks along with any verdict', () => {
    const remarks = { code: 'acme:7', warnings: ['w'], labels: ['l'], annotations: { a: 'b' } }
    expect(readVerdict('node', 'after', { action: 'pass', ...remarks })).toEqual({ action: 'pass', ...remarks })
  })
})

describe('an answer that is no verdict says what was received, and what to return', () => {
  it.each([
    {
      name: 'nothing',
      answer: undefined,
      says: 'answered undefined, which is no verdict; return { action } with one of: ',
    },
    { name: 'null', answer: null, says: 'answered null, which' },
    { name: 'a word', answer: 'reject', says: 'answered reject, which is no verdict' },
    { name: 'a number', answer: 7, says: 'answered a number, which' },
    { name: 'a list', answer: ['reject'], says: 'answered a list, which' },
    { name: 'a function', answer: () => 0, says: 'answered a function, which' },
    { name: 'another shape', answer: { verdict: 'block' }, says: 'answered an object with the keys verdict, which' },
    { name: 'an empty object', answer: {}, says: 'answered an object with the keys none, which' },
    { name: 'an action that is no text', answer: { action: 1 }, says: 'an object with the keys action, which' },
    {
      name: 'an action of Object.prototype',
      answer: { action: 'toString' },
      says: '"toString", which toolCall.before does not admit',
    },
    {
      name: 'an action in other letters',
      answer: { action: 'Reject' },
      says: '"Reject", which toolCall.before does not admit',
    },
    {
      name: 'an action of great length',
      answer: { action: 'x'.repeat(100) },
      says: `"${'x'.repeat(40)}…", which toolCall.before does not admit`,
    },
  ])('$name', ({ answer, says }) => {
    expect(() => readVerdict('toolCall', 'before', answer)).toThrow(NotAVerdict)
    expect(() => readVerdict('toolCall', 'before', answer)).toThrow(says)
    expect(() => readVerdict('toolCall', 'before', answer)).toThrow('proceed, modify, replace, reject, suspend')
  })

  it('never quotes the values it was given', () => {
    const secret = { password: 'hunter2' }
    for (const answer of [
      secret,
      { action: 'modify', input: { of: () => secret } },
      { action: 'suspend', ask: 'hunter2' },
    ])
      expect(() => readVerdict('toolCall', 'before', answer)).not.toThrow(/hunter2/)
  })
})

describe('a verdict that lacks something names itself and what it lacks', () => {
  it.each([
    { name: 'a modify without input', answer: { action: 'modify' }, says: 'answered "modify" without "input"' },
    { name: 'a replace without value', answer: { action: 'replace' }, says: 'answered "replace" without "value"' },
    {
      name: 'a reject without reason',
      answer: { action: 'reject' },
      says: '"reject" without a "reason" that says why',
    },
    {
      name: 'a reject with a blank reason',
      answer: { action: 'reject', reason: ' ' },
      says: '"reject" without a "reason"',
    },
    {
      name: 'a reject with a reason that is no text',
      answer: { action: 'reject', reason: 5 },
      says: '"reject" without a "reason"',
    },
    {
      name: 'a suspend without ask',
      answer: { action: 'suspend' },
      says: 'answered "suspend" without an object "ask"',
    },
    {
      name: 'a suspend whose ask is text',
      answer: { action: 'suspend', ask: '?' },
      says: 'answered "suspend" without an object "ask"',
    },
    {
      name: 'an input that is no JSON',
      answer: { action: 'modify', input: { at: new Date(0) } },
      says: 'the "input" of its "modify" is not JSON at at: it is an instance of Date',
    },
    {
      name: 'a value that is no JSON',
      answer: { action: 'replace', value: Number.NaN },
      says: 'the "value" of its "replace" is not JSON',
    },
    {
      name: 'an ask that is no JSON',
      answer: { action: 'suspend', ask: { of: 1n } },
      says: 'the "ask" of its "suspend" is not JSON at of',
    },
  ])('before: $name', ({ answer, says }) => {
    expect(() => readVerdict('toolCall', 'before', answer)).toThrow(says)
  })

  it.each([
    {
      name: 'a fail without reason',
      answer: { action: 'fail' },
      says: 'answered "fail" without a "reason" that says why',
    },
    {
      name: 'a negative delay',
      answer: { action: 'retry', delayMs: -1 },
      says: 'a "delayMs" of a number; give milliseconds, 0 or more',
    },
    { name: 'a delay that is no number', answer: { action: 'retry', delayMs: '1s' }, says: 'a "delayMs" of 1s' },
    {
      name: 'a delay without end',
      answer: { action: 'retry', delayMs: Number.POSITIVE_INFINITY },
      says: 'a "delayMs" of a number',
    },
  ])('after: $name', ({ answer, says }) => {
    expect(() => readVerdict('modelCall', 'after', answer)).toThrow(NotAVerdict)
    expect(() => readVerdict('modelCall', 'after', answer)).toThrow(says)
  })
})

describe('remarks are few and short', () => {
  const long = 'x'.repeat(1_025)
  const many = Array.from({ length: 17 }, (_, i) => `${i}`)

  it.each([
    { name: 'a code that is no text', remarks: { code: 7 }, says: 'gave a "code" that is no text of at most 1024' },
    {
      name: 'a code of the engine’s',
      remarks: { code: 'sluice:stop' },
      says: 'a "code" that begins with "sluice:"; those are the engine\'s',
    },
    {
      name: 'warnings that are no list',
      remarks: { warnings: 'w' },
      says: 'gave "warnings" that are no list of at most 16',
    },
    { name: 'too many warnings', remarks: { warnings: many }, says: 'gave "warnings" that are no list of at most 16' },
    {
      name: 'too long a warning',
      remarks: { warnings: [long] },
      says: 'gave a "warnings" that is no text of at most 1024',
    },
    { name: 'a label that is no text', remarks: { labels: [1] }, says: 'gave a "labels" that is no text' },
    { name: 'too many labels', remarks: { labels: many }, says: 'gave "labels" that are no list of at most 16' },
    {
      name: 'annotations that are a list',
      remarks: { annotations: ['a'] },
      says: 'gave "annotations" that are no object',
    },
    {
      name: 'an annotation that is no text',
      remarks: { annotations: { a: 1 } },
      says: 'gave a "annotations" that is no text',
    },
    {
      name: 'too many annotations',
      remarks: { annotations: Object.fromEntries(many.map((k) => [k, k])) },
      says: 'gave "annotations"',
    },
    {
      name: 'too long a name of an annotation',
      remarks: { annotations: { [long]: 'x' } },
      says: 'gave a "annotations" that is no text',
    },
  ])('refused: $name', ({ remarks, says }) => {
    expect(() => readVerdict('node', 'after', { action: 'pass', ...remarks })).toThrow(NotAVerdict)
    expect(() => readVerdict('node', 'after', { action: 'pass', ...remarks })).toThrow(says)
  })
})

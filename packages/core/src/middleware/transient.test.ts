import { describe, expect, it } from 'vitest'
import { SluiceError } from '../index.ts'
import { isTimeOut, isTransient, retryAfterMs } from './transient.ts'

const coded = (code: string) => Object.assign(new Error('it broke'), { code })

describe('an error that may be gone the next time', () => {
  it.each([
    ['a busy server', new SluiceError('MODEL_HTTP', '429 Too Many Requests: slow down'), true],
    ['a broken one', new Error('503 Service Unavailable'), true],
    ['an overloaded one', new Error('529 Unknown: Overloaded'), true],
    ['a status as a member', Object.assign(new Error('no'), { statusCode: 500 }), true],
    ['a cause', new Error('it failed', { cause: new Error('429 Too Many Requests') }), true],
    ['a connection that broke', new SluiceError('MODEL_UNREACHABLE', 'fetch failed', {}, coded('ECONNRESET')), true],
    ['a time-out', new SluiceError('CALL_TIMED_OUT', 'tool "x" timed out after 5 ms'), true],
    ['a wrong key', new Error('401 Unauthorized'), false],
    ['a wrong request, whatever it says of time', new Error('400 Bad Request: timeout is no field'), false],
    ['what the server does not do', new Error('501 Not Implemented'), false],
    ['a number that is no status', new Error('4290 rows were refused'), false],
    ['a mistake of the program', new TypeError('x is not a function'), false],
    ['a text', '429 Too Many Requests', true],
    ['nothing', undefined, false],
    ['null', null, false],
  ])('%s', (_name, error, expected) => expect(isTransient(error)).toBe(expected))

  it('is looked for no deeper than five causes, so that a ring of causes has an end', () => {
    const ring = new Error('it broke') as Error & { cause?: unknown }
    ring.cause = ring
    expect(isTransient(ring)).toBe(false)
  })
})

describe('an error of a time that was over', () => {
  it.each([
    ['says so', new Error('program "x" timed out after 5 ms'), true],
    ['was caused by one', new Error('it failed', { cause: new Error('it timed out') }), true],
    ['is another', new Error('it broke'), false],
  ])('%s', (_name, error, expected) => expect(isTimeOut(error)).toBe(expected))
})

describe('how long a server asks to wait', () => {
  it.each([
    ['429 Too Many Requests: busy (Retry-After: 20)', 20_000],
    ['retry after 1.5s', 1_500],
    ['Please try again in 300ms.', 300],
    ['Please try again in 2m', 120_000],
    ['retry-after=0', 0],
    ['Retry-After: Wed, 21 Oct 2026 07:28:00 GMT', undefined],
    ['it broke', undefined],
  ])('%s', (message, expected) => expect(retryAfterMs(new Error(message))).toBe(expected))

  it('is found in a cause', () =>
    expect(retryAfterMs(new Error('it failed', { cause: new Error('Retry-After: 2') }))).toBe(2_000))
})

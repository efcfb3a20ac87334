import { describe, expect, it } from 'vitest'
import { errorLine, isTooLong, MAX_LINE_BYTES, notificationLine, requestLine, resultLine } from './frames.ts'
import { Outbox } from './outbox.ts'

describe('frames put together by hand', () => {
  it('are JSON, one on a line', () => {
    const lines = [
      requestLine(1, 'before', '{"a":"\\n"}'),
      notificationLine('cancel', '{"call":1}'),
      resultLine('r"1', 'null'),
      errorLine(2, { code: -32000, message: 'no "x"\n', data: { name: 'Error' } }),
    ]
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { jsonrpc: '2.0', id: 1, method: 'before', params: { a: '\n' } },
      { jsonrpc: '2.0', method: 'cancel', params: { call: 1 } },
      { jsonrpc: '2.0', id: 'r"1', result: null },
      { jsonrpc: '2.0', id: 2, error: { code: -32000, message: 'no "x"\n', data: { name: 'Error' } } },
    ])
    for (const line of lines) expect(line.indexOf('\n')).toBe(line.length - 1)
  })

  it('cut the message of an error, so that its line is never too long', () => {
    const { error } = JSON.parse(errorLine(1, { code: -32000, message: 'x'.repeat(MAX_LINE_BYTES) }))
    expect(error.message).toHaveLength(64 * 1024)
  })

  it.each([
    { name: 'short', text: 'x', tooLong: false },
    { name: 'as long as it may be', text: 'x'.repeat(MAX_LINE_BYTES - 100), tooLong: false },
    { name: 'longer', text: 'x'.repeat(MAX_LINE_BYTES), tooLong: true },
    { name: 'of few characters and many bytes', text: '€'.repeat(MAX_LINE_BYTES / 3), tooLong: true },
  ])('measure text in bytes: $name', ({ text, tooLong }) => expect(isTooLong(text)).toBe(tooLong))
})

describe('an outbox', () => {
  it('writes in one piece what was sent in one turn', async () => {
    const writes: string[] = []
    const outbox = new Outbox((text) => writes.push(text))
    outbox.send('a\n')
    outbox.send('b\n')
    expect(writes).toEqual([])
    await Promise.resolve()
    outbox.send('c\n')
    outbox.flush()
    await Promise.resolve()
    expect(writes).toEqual(['a\nb\n', 'c\n'])
  })
})

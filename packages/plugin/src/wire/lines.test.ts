import { describe, expect, it, vi } from 'vitest'
import { LineReader } from './lines.ts'

function reading(maxBytes = 1_000) {
  const lines: string[] = []
  const onTooLong = vi.fn()
  return { lines, onTooLong, reader: new LineReader({ maxBytes, onLine: (text) => lines.push(text), onTooLong }) }
}

describe('lines out of bytes', () => {
  it.each([
    { name: 'several in one chunk', chunks: ['a\nb\n\nc\n'], lines: ['a', 'b', '', 'c'] },
    { name: 'one over several chunks', chunks: ['a', 'b', 'c\nd', '\n'], lines: ['abc', 'd'] },
    { name: 'the end of a line alone', chunks: ['abc', '\n', 'd\n'], lines: ['abc', 'd'] },
    { name: 'a line that never ends', chunks: ['a\nb'], lines: ['a'] },
  ])('$name', ({ chunks, lines }) => {
    const { reader, lines: read } = reading()
    for (const chunk of chunks) reader.push(Buffer.from(chunk))
    expect(read).toEqual(lines)
  })

  it('do not cut a character, wherever a chunk ends', () => {
    const bytes = Buffer.from('{"text":"é😀"}\n')
    for (let at = 1; at < bytes.length; at++) {
      const { reader, lines } = reading()
      reader.push(bytes.subarray(0, at))
      reader.push(bytes.subarray(at))
      expect(lines).toEqual(['{"text":"é😀"}'])
    }
  })

  it('may have the most bytes, and not one more; after that nothing is read', () => {
    const { reader, lines, onTooLong } = reading(4)
    reader.push(Buffer.from('1234\n12'))
    reader.push(Buffer.from('34\n123'))
    expect([lines, onTooLong.mock.calls]).toEqual([['1234', '1234'], []])
    reader.push(Buffer.from('45'))
    reader.push(Buffer.from('\na\n'))
    expect([lines, onTooLong.mock.calls.length]).toEqual([['1234', '1234'], 1])
  })

  it('are too long in one chunk, too', () => {
    const { reader, lines, onTooLong } = reading(4)
    reader.push(Buffer.from('12345\na\n'))
    expect([lines, onTooLong.mock.calls.length]).toEqual([[], 1])
  })
})

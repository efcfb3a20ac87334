import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ChatChunk, type ChatResponse, ResponseAssembler } from '../index.ts'

const assembled = (chunks: readonly ChatChunk[]): ChatResponse => {
  const assembler = new ResponseAssembler()
  for (const chunk of chunks) assembler.add(chunk)
  return assembler.response()
}

const call = fc.record({ id: fc.string({ minLength: 1 }), name: fc.string({ minLength: 1 }), arguments: fc.string() })
const response = fc.record(
  {
    content: fc.string(),
    finish_reason: fc.constantFrom('stop', 'tool_calls', 'length'),
    tool_calls: fc.array(call, { minLength: 1, maxLength: 4 }),
    usage: fc.record({ inputTokens: fc.nat(), outputTokens: fc.nat(), totalTokens: fc.nat() }),
  },
  { requiredKeys: ['content', 'finish_reason'] },
)

/** A text cut into pieces, in order; some may be empty. */
const pieces = (text: string, cuts: readonly number[]): string[] => {
  const at = [0, ...cuts.map((cut) => cut % (text.length + 1)).toSorted((a, b) => a - b), text.length]
  return at.slice(1).map((end, i) => text.slice(at[i], end))
}

/** One of the ways of sending a response in chunks: each text in pieces, and what belongs to different texts mixed. */
const cut = (whole: ChatResponse) => {
  const { content, finish_reason, tool_calls = [], usage } = whole
  const cuts = fc.array(fc.nat(), { maxLength: 5 })
  return fc
    .record({ content: cuts, calls: fc.array(cuts, { minLength: 4, maxLength: 4 }), mix: fc.infiniteStream(fc.nat()) })
    .map(({ content: contentCuts, calls, mix }) => {
      const lanes: ChatChunk[][] = [
        pieces(content, contentCuts).map((text) => ({ content: text })),
        ...tool_calls.map(({ id, name, arguments: text }, index) =>
          pieces(text, calls[index] ?? []).map((part, i): ChatChunk => {
            // Providers name a call in its first fragment; some repeat the name as an empty text afterwards.
            const named = i === 0 ? { id, name } : i % 2 ? {} : { id: '', name: '' }
            return { tool_calls: [{ index, ...named, arguments: part }] }
          }),
        ),
        [{ finish_reason, usage }],
      ]
      const chunks: ChatChunk[] = []
      for (
        let open = lanes.filter((lane) => lane.length > 0);
        open.length > 0;
        open = open.filter((lane) => lane.length > 0)
      ) {
        chunks.push(open[(mix.next().value as number) % open.length]?.shift() as ChatChunk)
      }
      return chunks
    })
}

describe('a streamed response', () => {
  it('O2, I23: is the same however it was cut into chunks, fragments of several tool calls interleaved', () => {
    const cutResponse = response.chain((whole) =>
      fc.tuple(fc.constant(whole as ChatResponse), cut(whole as ChatResponse)),
    )
    fc.assert(
      fc.property(cutResponse, ([whole, chunks]) => {
        expect(assembled(chunks)).toEqual(whole)
      }),
      { numRuns: 1_000 },
    )
  })
  it('has its tool calls in the order of their index, whichever came first', () => {
    const chunks = [1, 0].map((index) => ({ tool_calls: [{ index, id: `c${index}`, name: 'echo', arguments: '{}' }] }))
    expect(assembled(chunks).tool_calls?.map(({ id }) => id)).toEqual(['c0', 'c1'])
  })
  it('keeps the last finish reason and the last usage', () => {
    const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3 }
    expect(assembled([{ finish_reason: 'length' }, { usage }, { finish_reason: 'stop' }])).toEqual({
      content: '',
      finish_reason: 'stop',
      usage,
    })
  })
  it.each([
    { name: 'an id', fragment: { index: 0, name: 'echo' } },
    { name: 'a name', fragment: { index: 0, id: 'c' } },
  ])('is refused when a tool call never got $name', ({ fragment }) => {
    expect(() => assembled([{ tool_calls: [fragment] }])).toThrow(
      expect.objectContaining({ code: 'CHAT_SHAPE', message: "the stream's tool call 0 has no id or no name." }),
    )
  })
})

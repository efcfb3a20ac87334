import { HttpAgent } from '@ag-ui/client'
import { EventSchemas } from '@ag-ui/core/schemas'
import type { RunEvent } from '@sluice/core'
import { DefaultChatTransport, readUIMessageStream, type UIMessage } from 'ai'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { framesOf } from '../testing/served.ts'
import { agUiRendering } from './ag-ui/rendering.ts'
import { aiSdkRendering } from './ai-sdk/rendering.ts'
import { completionStream } from './openai/completion.ts'
import type { Rendering } from './protocol.ts'

/** A flow with a model `ask`, of which the end takes its only output. */
const text = { title: 'answer', type: { kind: 'string' } }
const flow = {
  outputs: [text],
  openOutputs: false,
  nodes: [
    { name: 'ask', type: 'LlmNode', outputs: [text] },
    { name: 'end', type: 'EndNode', outputs: [text] },
  ],
  dataEdges: undefined,
} as never

const event = (fields: object) => ({ path: ['flow'], ...fields }) as unknown as RunEvent
const ask = { nodeName: 'ask', nodeType: 'LlmNode' }
const call = { ...ask, toolName: 'pay', toolCallId: 'c1' }
const START = event({ type: 'run_start', graphName: 'flow', runId: 'r' })
const NODE = event({ type: 'node_start', ...ask, attempt: 1 })
const done = (answer: string) => event({ type: 'run_end', status: 'completed', result: { answer } })
const token = (said: string, more: object = {}) => event({ type: 'token', ...ask, text: said, ...more })
const question = {
  id: 'q',
  key: 'ask:pay@Gate',
  askedBy: 'policy:Gate',
  nodeName: 'ask',
  payload: { tool: 'pay', arguments: { sum: 10 } },
  schema: { type: 'object', properties: { approved: { type: 'boolean' } } },
  expiresAt: 0,
  toolCallId: 'c1',
}
const SUSPEND = event({
  type: 'decision',
  policy: 'Gate',
  seam: 'toolCall',
  half: 'before',
  action: 'suspend',
  subject: call,
})
const PAUSED = event({ type: 'run_end', status: 'paused', asks: [question] })

const RUN = { run: 'r', thread: 't', threadId: 't', runId: 'r', flow }
const RENDERINGS = {
  'ag-ui': () => agUiRendering(RUN),
  'ai-sdk': () => aiSdkRendering(RUN),
  openai: () =>
    completionStream(
      { run: { id: 'r', thread: 't', at: 0 }, flow, model: 'flow' },
      { includeUsage: false, holds: false },
    ),
}

async function framesIn(rendering: Rendering, events: readonly RunEvent[]): Promise<string> {
  const frames: string[] = []
  for (const [i, each] of events.entries()) frames.push(...(await rendering.event(each, i + 1)))
  frames.push(...((await rendering.finish?.()) ?? []))
  return frames.join('')
}

type Data = Record<string, unknown> & { readonly type: string }

async function renderedAs(protocol: keyof typeof RENDERINGS, events: readonly RunEvent[]): Promise<readonly Data[]> {
  const frames = framesOf(await framesIn(RENDERINGS[protocol](), events))
  return frames.filter(({ data }) => data !== '[DONE]').map(({ data }) => JSON.parse(data))
}

/** What happened, and the types of the frames that each protocol has for it between its first and its last. */
const CASES = [
  {
    name: 'text as it comes',
    events: [token('Hel'), token('lo'), done('Hello')],
    agUi: ['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'STEP_FINISHED'],
    aiSdk: ['text-start', 'text-delta', 'text-delta', 'text-end'],
    openai: ['Hel', 'lo'],
  },
  {
    name: 'an answer that no model said',
    events: [done('Hello')],
    agUi: ['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'STEP_FINISHED'],
    aiSdk: ['text-start', 'text-delta', 'text-end'],
    openai: ['Hello'],
  },
  {
    name: 'text that is taken back: what comes next is another message or part',
    events: [token('No'), event({ type: 'retracted', ...ask, tokens: 1 }), token('Yes'), done('Yes')],
    agUi: [
      ...['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'CUSTOM'],
      ...['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'STEP_FINISHED'],
    ],
    aiSdk: ['text-start', 'text-delta', 'text-end', 'data-retracted', 'text-start', 'text-delta', 'text-end'],
    openai: ['No', 'text_retracted'],
  },
  {
    name: 'text in place of a model’s',
    events: [token('Hidden', { substituted: true }), done('Hidden')],
    agUi: ['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'STEP_FINISHED'],
    aiSdk: ['text-start', 'text-delta', 'text-end'],
    openai: ['Hidden'],
  },
  {
    name: 'a tool that is called between two texts',
    events: [
      token('Wait.'),
      event({ type: 'tool_call', ...call, toolArgs: { sum: 10 } }),
      event({ type: 'tool_result', ...call, toolResult: { paid: true } }),
      token('Paid.'),
      done('Paid.'),
    ],
    agUi: [
      ...['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END'],
      ...['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'TOOL_CALL_RESULT'],
      ...['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'STEP_FINISHED'],
    ],
    aiSdk: [
      ...['text-start', 'text-delta', 'text-end', 'tool-input-available', 'tool-output-available'],
      ...['text-start', 'text-delta', 'text-end'],
    ],
    openai: ['Wait.', '\n\nPaid.'],
  },
  {
    name: 'a tool that is refused before it is called',
    events: [event({ type: 'tool_result', ...call, refused: 'no' }), done('Sorry')],
    agUi: [
      ...['TOOL_CALL_START', 'TOOL_CALL_END', 'TOOL_CALL_RESULT'],
      ...['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'STEP_FINISHED'],
    ],
    aiSdk: ['tool-input-available', 'tool-output-error', 'text-start', 'text-delta', 'text-end'],
    openai: ['Sorry'],
  },
  {
    name: 'a call that waits for a person',
    events: [SUSPEND, PAUSED],
    agUi: ['CUSTOM', 'TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'STEP_FINISHED'],
    aiSdk: ['data-decision', 'data-ask', 'tool-input-available', 'tool-approval-request'],
    openai: ['This run waits for an answer before it goes on:\n- May tool "pay" be called? (ask q)'],
  },
  {
    name: 'a run inside the run: its nodes, and neither its beginning nor its end',
    events: [
      event({ type: 'run_start', graphName: 'inner', runId: 'r2', path: ['flow', 'sub'] }),
      token('inner', { path: ['flow', 'sub'] }),
      event({ type: 'run_end', status: 'completed', result: {}, path: ['flow', 'sub'] }),
      done('outer'),
    ],
    agUi: [
      ...['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END'],
      ...['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'STEP_FINISHED'],
    ],
    aiSdk: ['text-start', 'text-delta', 'text-end', 'text-start', 'text-delta', 'text-end'],
    openai: ['outer'],
  },
] as const

describe.each(CASES)('$name', ({ events, agUi, aiSdk, openai }) => {
  const all = [START, NODE, ...events]
  it('is rendered for AG-UI', async () => {
    const frames = await renderedAs('ag-ui', all)
    for (const frame of frames) expect(EventSchemas.safeParse(frame)).toMatchObject({ success: true })
    expect(frames.map(({ type }) => type)).toEqual(['RUN_STARTED', 'STEP_STARTED', ...agUi, 'RUN_FINISHED'])
  })
  it('is rendered for the AI SDK', async () => {
    const types = (await renderedAs('ai-sdk', all)).map(({ type }) => type)
    expect(types).toEqual(['start', 'data-run', 'data-node', ...aiSdk, 'finish'])
  })
  it('is rendered for clients of OpenAI', async () => {
    const frames = (await renderedAs('openai', all)) as unknown as {
      choices?: { delta: { content?: string } }[]
      error?: { code: string }
    }[]
    const said = frames.map(({ choices, error }) => error?.code ?? choices?.[0]?.delta.content ?? '')
    expect(said.filter((each) => each !== '')).toEqual(openai)
  })
})

describe('what a protocol says', () => {
  it('of text that is taken back: which message, and what is left of it', async () => {
    const events = [
      START,
      NODE,
      token('Yes'),
      token('No'),
      event({ type: 'retracted', ...ask, tokens: 1 }),
      done('Yes'),
    ]
    const agUi = await renderedAs('ag-ui', events)
    const start = agUi.find(({ type }) => type === 'TEXT_MESSAGE_START')
    expect(agUi.find(({ name }) => name === 'retracted')).toMatchObject({
      value: { messages: [{ messageId: start?.messageId, content: 'Yes' }] },
    })
    const aiSdk = await renderedAs('ai-sdk', events)
    const part = aiSdk.find(({ type }) => type === 'text-start')
    expect(aiSdk.find(({ type }) => type === 'data-retracted')).toMatchObject({
      data: { parts: [{ id: part?.id, text: 'Yes' }] },
    })
  })

  it.each([
    {
      status: 'failed',
      agUi: { type: 'RUN_ERROR', message: 'no', code: 'X' },
      aiSdk: { type: 'error', errorText: 'no' },
    },
    {
      status: 'cancelled',
      agUi: { type: 'RUN_FINISHED', outcome: { type: 'cancelled' } },
      aiSdk: { type: 'abort', reason: 'no' },
    },
  ])('of a run that was $status', async ({ status, agUi, aiSdk }) => {
    const events = [START, NODE, event({ type: 'run_end', status, error: { name: 'E', message: 'no', code: 'X' } })]
    expect((await renderedAs('ag-ui', events)).at(-1)).toMatchObject(agUi)
    expect((await renderedAs('ai-sdk', events)).at(-1)).toEqual(aiSdk)
    expect((await renderedAs('openai', events)).at(-1)).toMatchObject({ error: { message: 'no', code: 'X' } })
  })

  it('of a run whose events break off', async () => {
    expect((await renderedAs('ag-ui', [START])).at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'RUN_LOST' })
    expect((await renderedAs('ai-sdk', [START])).at(-1)).toMatchObject({ type: 'error' })
    expect((await renderedAs('openai', [START])).at(-1)).toMatchObject({ error: { code: 'RUN_LOST' } })
  })

  it('of two calls of one tool that wait: which of them each question is about', async () => {
    const other = { ...question, id: 'q2', key: 'ask:pay[1]@Gate', toolCallId: 'c2' }
    const paused = event({ type: 'run_end', status: 'paused', asks: [question, other] })
    const agUi = (await renderedAs('ag-ui', [START, NODE, paused])).at(-1)
    expect(agUi).toMatchObject({
      outcome: {
        interrupts: [
          { id: 'q', toolCallId: 'c1' },
          { id: 'q2', toolCallId: 'c2' },
        ],
      },
    })
    const aiSdk = await renderedAs('ai-sdk', [START, NODE, paused])
    expect(aiSdk.filter(({ type }) => type === 'tool-approval-request')).toMatchObject([
      { approvalId: 'q', toolCallId: 'c1' },
      { approvalId: 'q2', toolCallId: 'c2' },
    ])
  })
})

const names = fc.constantFrom('ask', 'other')
const place = fc.record({ nodeName: names, path: fc.constantFrom(['flow'], ['flow', 'sub']) })
const kinds = fc.constantFrom(
  'node_start',
  'node_complete',
  'node_error',
  'model_call',
  'token',
  'retracted',
  'tool_call',
  'tool_result',
  'warning',
)
const happening = fc.record({
  type: kinds,
  at: place,
  id: fc.constantFrom('c1', 'c2'),
  tokens: fc.nat(3),
  text: fc.string(),
})
const anything = fc.array(happening, { maxLength: 30 }).map((all) =>
  all.map(({ type, at, id, tokens, text: said }) =>
    event({
      ...{ type, ...at, nodeType: 'N', attempt: 1, output: { said }, error: { name: 'E', message: said }, model: 'm' },
      ...{ toolName: 'pay', toolCallId: id, toolArgs: {}, tokens, text: said, message: said },
      ...(type === 'tool_result' ? { error: undefined, toolResult: said } : {}),
    }),
  ),
)
const ends = fc.constantFrom(done('Hello'), PAUSED)
const sse = (body: string) => Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }))

describe('whatever happens in a run', () => {
  it('is a stream that @ag-ui/client takes', async () => {
    await fc.assert(
      fc.asyncProperty(anything, ends, async (events, end) => {
        const body = await framesIn(RENDERINGS['ag-ui'](), [START, ...events, end])
        const agent = new HttpAgent({ url: 'http://localhost', threadId: 't', fetch: () => sse(body) })
        await agent.runAgent({ runId: 'r' })
      }),
      { numRuns: 60 },
    )
  })

  it('is a message that the AI SDK takes', async () => {
    await fc.assert(
      fc.asyncProperty(anything, ends, async (events, end) => {
        const body = await framesIn(RENDERINGS['ai-sdk'](), [START, ...events, end])
        const transport = new DefaultChatTransport({ api: 'http://localhost', fetch: () => sse(body) })
        const request = { chatId: 't', messages: [], messageId: undefined, abortSignal: undefined }
        const stream = await transport.sendMessages({ ...request, trigger: 'submit-message' })
        let message: UIMessage | undefined
        for await (const each of readUIMessageStream({ stream, terminateOnError: true })) message = each
        expect(message?.id).toBe('r')
      }),
      { numRuns: 60 },
    )
  })
})

import { generateText, isStepCount, streamText, ToolLoopAgent, tool, wrapLanguageModel } from 'ai'
import { z } from 'zod'
import { ROUNDS } from '../lib/fixtures.mjs'

export const meta = { subject: 'ai-sdk', packages: ['ai', '@ai-sdk/provider'] }

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}
// The mock of `ai/test` keeps every call that it was given, so a bare object of the same shape is used instead.
const roundsModel = () => ({
  specificationVersion: 'v4',
  provider: 'fake',
  modelId: 'fake',
  supportedUrls: {},
  async doGenerate({ prompt }) {
    let done = 0
    for (const m of prompt) if (m.role === 'tool') done += m.content.length
    return done < ROUNDS
      ? {
          content: [
            {
              type: 'tool-call',
              toolCallId: `call_${done}`,
              toolName: 'lookup',
              input: JSON.stringify({ q: `question ${done}` }),
            },
          ],
          finishReason: { unified: 'tool-calls', raw: 'tool_calls' },
          usage,
          warnings: [],
        }
      : {
          content: [{ type: 'text', text: 'the final answer' }],
          finishReason: { unified: 'stop', raw: 'stop' },
          usage,
          warnings: [],
        }
  },
})
const chunksModel = (n) => ({
  specificationVersion: 'v4',
  provider: 'fake',
  modelId: 'fake',
  supportedUrls: {},
  async doStream() {
    let i = -2
    return {
      stream: new ReadableStream({
        pull(c) {
          if (i === -2) c.enqueue({ type: 'stream-start', warnings: [] })
          else if (i === -1) c.enqueue({ type: 'text-start', id: 't' })
          else if (i < n) c.enqueue({ type: 'text-delta', id: 't', delta: 'tok ' })
          else if (i === n) c.enqueue({ type: 'text-end', id: 't' })
          else {
            c.enqueue({ type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage })
            c.close()
          }
          i++
        },
      }),
    }
  },
})

const wrapped = (model, k) =>
  k === 0
    ? model
    : wrapLanguageModel({
        model,
        middleware: Array.from({ length: k }, () => ({
          specificationVersion: 'v4',
          transformParams: async ({ params }) => params,
          wrapGenerate: ({ doGenerate }) => doGenerate(),
          wrapStream: async ({ doStream }) => {
            const { stream, ...rest } = await doStream()
            return {
              stream: stream.pipeThrough(
                new TransformStream({
                  transform(x, c) {
                    c.enqueue(x)
                  },
                }),
              ),
              ...rest,
            }
          },
        })),
      })

/** What decides about a model's call: middleware of the model, in this process. */
const judged = (model) =>
  wrapLanguageModel({
    model,
    middleware: { specificationVersion: 'v4', transformParams: async ({ params }) => params },
  })

const lookup = tool({
  description: 'Looks a thing up',
  inputSchema: z.object({ q: z.string() }),
  execute: async ({ q }) => `result for ${q}`,
})
const check = (r) => {
  if (r.steps.length !== ROUNDS + 1) throw new Error(`steps ${r.steps.length}`)
}

export async function cases() {
  const base = { group: 'agent 10 tool rounds', unit: 'ms', ops: 1, samples: 31, warmup: 8 }
  return [
    ...[0, 1, 5, 10].map((k) => ({
      ...base,
      id: `generateText, ${k} model middleware`,
      series: 'model middleware',
      k,
      setup: () => wrapped(roundsModel(), k),
      fn: async (model) =>
        check(await generateText({ model, tools: { lookup }, prompt: 'go', stopWhen: isStepCount(50) })),
    })),
    // Beside a policy of ours: here a function of the application decides, in its own process; there is no other place for it.
    ...[
      ['tool calls', (model) => model],
      ['tool+model calls', judged],
    ].map(([calls, wrap]) => ({
      ...base,
      id: `decides ${calls}: toolApproval`,
      setup: () => wrap(roundsModel()),
      fn: async (model) =>
        check(
          await generateText({
            model,
            tools: { lookup },
            prompt: 'go',
            stopWhen: isStepCount(50),
            toolApproval: async () => 'approved',
          }),
        ),
    })),
    ...[0, 5].map((k) => ({
      ...base,
      id: `ToolLoopAgent, ${k} model middleware`,
      setup: () =>
        new ToolLoopAgent({ model: wrapped(roundsModel(), k), tools: { lookup }, stopWhen: isStepCount(50) }),
      fn: async (a) => check(await a.generate({ prompt: 'go' })),
    })),
    {
      ...base,
      id: 'ToolLoopAgent, all callbacks + approval fn',
      setup: () =>
        new ToolLoopAgent({
          model: roundsModel(),
          tools: { lookup },
          stopWhen: isStepCount(50),
          prepareStep: () => ({}),
          onStart: () => {},
          onStepStart: () => {},
          onStepEnd: () => {},
          onEnd: () => {},
          onToolExecutionStart: () => {},
          onToolExecutionEnd: () => {},
          toolApproval: async () => 'approved',
        }),
      fn: async (a) => check(await a.generate({ prompt: 'go' })),
    },
    ...[0, 1, 5].map((k) => ({
      id: `streamText fullStream, ${k} middleware`,
      series: 'wrapStream + TransformStream',
      k,
      group: 'stream 10000 chunks',
      unit: 'chunks/s',
      rate: true,
      ops: 10000,
      samples: 5,
      warmup: 1,
      setup: () => wrapped(chunksModel(10000), k),
      fn: async (model) => {
        let n = 0
        for await (const p of streamText({ model, prompt: 'go' }).fullStream) if (p.type === 'text-delta') n++
        if (n < 10000) throw new Error(`only ${n}`)
      },
    })),
  ]
}

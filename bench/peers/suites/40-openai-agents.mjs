import { Agent, Runner, setTracingDisabled, tool, Usage } from '@openai/agents'
import { z } from 'zod'
import { ROUNDS } from '../lib/fixtures.mjs'

export const meta = { subject: 'openai-agents', packages: ['@openai/agents', '@openai/agents-core'] }
setTracingDisabled(true)

class RoundsModel {
  async getResponse({ input }) {
    const done = Array.isArray(input) ? input.filter((i) => i.type === 'function_call_result').length : 0
    return {
      usage: new Usage(),
      responseId: `r${done}`,
      output:
        done < ROUNDS
          ? [
              {
                type: 'function_call',
                id: `f${done}`,
                callId: `call_${done}`,
                name: 'lookup',
                arguments: JSON.stringify({ q: `question ${done}` }),
                status: 'completed',
              },
            ]
          : [
              {
                type: 'message',
                id: 'm',
                role: 'assistant',
                status: 'completed',
                content: [{ type: 'output_text', text: 'the final answer' }],
              },
            ],
    }
  }
  // biome-ignore lint/correctness/useYield: the interface wants a generator, and this one is never asked.
  async *getStreamedResponse() {
    throw new Error('not used')
  }
}
class ChunksModel {
  async getResponse() {
    throw new Error('not used')
  }
  async *getStreamedResponse() {
    yield { type: 'response_started' }
    for (let i = 0; i < 10000; i++) yield { type: 'output_text_delta', delta: 'tok ' }
    yield {
      type: 'response_done',
      response: {
        id: 'r',
        usage: { requests: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2 },
        output: [
          {
            type: 'message',
            id: 'm',
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: 'done' }],
          },
        ],
      },
    }
  }
}

const guard = (k) =>
  Array.from({ length: k }, (_, i) => ({ name: `g${i}`, run: async () => ({ behavior: { type: 'allow' } }) }))
const lookup = (k = 0) =>
  tool({
    name: 'lookup',
    description: 'Looks a thing up',
    parameters: z.object({ q: z.string() }),
    execute: async ({ q }) => `result for ${q}`,
    ...(k ? { inputGuardrails: guard(k), outputGuardrails: guard(k) } : {}),
  })
const io = (k) =>
  Array.from({ length: k }, (_, i) => ({
    name: `io${i}`,
    execute: async () => ({ tripwireTriggered: false, outputInfo: {} }),
  }))
const go = async ({ runner, agent }) => {
  const r = await runner.run(agent, 'go', { maxTurns: 50 })
  if (r.finalOutput !== 'the final answer' || r.newItems.length < 2 * ROUNDS) throw new Error('bad run')
}

export async function cases() {
  const base = { group: 'agent 10 tool rounds', unit: 'ms', ops: 1, samples: 31, warmup: 8 }
  return [
    {
      ...base,
      id: 'Runner.run, no guardrails',
      series: 'tool input + output guardrail',
      k: 0,
      setup: () => ({
        runner: new Runner({ tracingDisabled: true }),
        agent: new Agent({ name: 'a', model: new RoundsModel(), tools: [lookup()] }),
      }),
      fn: go,
    },
    {
      ...base,
      id: '5 tool input + 5 output guardrails',
      series: 'tool input + output guardrail',
      k: 5,
      setup: () => ({
        runner: new Runner({ tracingDisabled: true }),
        agent: new Agent({ name: 'a', model: new RoundsModel(), tools: [lookup(5)] }),
      }),
      fn: go,
    },
    {
      ...base,
      id: '5 input + 5 output agent guardrails',
      setup: () => ({
        runner: new Runner({ tracingDisabled: true }),
        agent: new Agent({
          name: 'a',
          model: new RoundsModel(),
          tools: [lookup()],
          inputGuardrails: io(5),
          outputGuardrails: io(5),
        }),
      }),
      fn: go,
    },
    {
      ...base,
      id: 'callModelInputFilter',
      setup: () => ({
        runner: new Runner({ tracingDisabled: true, callModelInputFilter: async ({ modelData }) => modelData }),
        agent: new Agent({ name: 'a', model: new RoundsModel(), tools: [lookup()] }),
      }),
      fn: go,
    },
    {
      id: 'Runner.run stream',
      group: 'stream 10000 chunks',
      unit: 'chunks/s',
      rate: true,
      ops: 10000,
      samples: 5,
      warmup: 1,
      setup: () => ({
        runner: new Runner({ tracingDisabled: true }),
        agent: new Agent({ name: 'a', model: new ChunksModel() }),
      }),
      fn: async ({ runner, agent }) => {
        const s = await runner.run(agent, 'go', { stream: true })
        let n = 0
        for await (const e of s) if (e.type === 'raw_model_stream_event' && e.data.type === 'output_text_delta') n++
        await s.completed
        if (n < 10000) throw new Error(`only ${n}`)
      },
    },
  ]
}

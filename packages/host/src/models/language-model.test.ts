import { createRuntime, END, graph, node, START, state } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { fromLanguageModel, type LanguageModel } from './language-model.ts'

const Said = state({ said: z.string().default('') })

/** A provider whose requests all fail with this. */
const failing = (error: object): LanguageModel => ({
  specificationVersion: 'v2',
  provider: 'test',
  modelId: 'm',
  doGenerate: () => Promise.reject(Object.assign(new Error('slow down'), error)),
  doStream: () => Promise.reject(Object.assign(new Error('slow down'), error)),
})

describe('a request that a provider refused', () => {
  it.each([
    { name: 'without more', error: { statusCode: 429 }, message: '429 Too Many Requests: slow down' },
    {
      name: 'with the time that it asks to wait, for retries to read',
      error: { statusCode: 429, responseHeaders: { 'retry-after': '20' } },
      message: '429 Too Many Requests: slow down (Retry-After: 20)',
    },
  ])('fails with its status first, $name', async ({ error, message }) => {
    const model = fromLanguageModel(failing(error))
    const ask = node('ask', Said, async (_s, ctx) => ({
      said: (await ctx.callModel(model, { messages: [{ role: 'user', content: 'hi' }] })).content,
    }))
    const running = createRuntime().run(graph('g', Said).edge(START, ask).edge(ask, END).check())
    await expect(running).rejects.toMatchObject({ code: 'MODEL_HTTP', message })
  })
})

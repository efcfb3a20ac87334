import { LLMock } from '@copilotkit/aimock'
import { onTestFinished } from 'vitest'
import { ECHO_TOOL, GATE, helperOf } from './documents.ts'
import { type Served, served } from './served.ts'

export const SAID = 'Ten are paid, and a good evening to you all.'

/** A model on loopback that asks for the tool `pay`, and then says {@link SAID}. */
async function payingModel(calls: readonly string[]): Promise<LLMock> {
  const model = new LLMock({ port: 0 })
  await model.start()
  onTestFinished(async () => {
    await model.stop()
  })
  model.addFixture({
    match: { hasToolResult: false },
    response: { toolCalls: calls.map((id) => ({ id, name: 'pay', arguments: '{"said":"ten"}' })) },
  })
  model.addFixture({ match: { hasToolResult: true }, response: { content: SAID } })
  return model
}

interface Helped extends Served {
  /** Of a socket on loopback. */
  readonly url: string
  readonly model: LLMock
}

interface HelpedOptions {
  /** Whether a person approves each call first. */
  readonly isGated?: boolean
  /** The module of a policy. */
  readonly policy?: string
  /** Ids of the calls that the model makes at once. */
  readonly calls?: readonly string[]
}

/** A server on a socket with the flow `helper`, an agent that pays. */
export async function helped({ isGated = false, policy, calls = ['call_7'] }: HelpedOptions = {}): Promise<Helped> {
  const model = await payingModel(calls)
  const files = { 'flows/helper.json': helperOf(`${model.url}/v1`), 'tools/pay': ECHO_TOOL, 'gate.mjs': policy ?? GATE }
  const it = await served(files, (at) => (isGated || policy !== undefined ? { plugins: [at('gate.mjs')] } : {}))
  const { url } = await it.server.listen({ port: 0 })
  return { ...it, url, model }
}

// Parts of a model's answer on their way to whoever listens.
import { createRuntime, END, graph, messages, modelNode, policy, START, state } from '@sluice/core'
import { interleaved, row } from '../lib/measure.mjs'

const CHUNKS = 20_000
const Conversation = state({ messages: messages() })
const chunk = { content: 'word ' }

const model = {
  model: 'bench',
  chat: async () => ({ content: '', finish_reason: 'stop' }),
  stream: () => {
    let left = CHUNKS
    const done = Promise.resolve({ done: true, value: undefined })
    const next = Promise.resolve({ done: false, value: chunk })
    return { [Symbol.asyncIterator]: () => ({ next: () => (left-- > 0 ? next : done) }) }
  },
}

const answer = modelNode('answer', Conversation, { model })
const compiled = graph('stream', Conversation).edge(START, answer).edge(answer, END).check()
const watcher = policy({
  name: 'Watcher',
  stream: 'pass',
  seams: { modelCall: { before: () => ({ action: 'proceed' }), after: () => ({ action: 'pass' }) } },
})

async function drain(runtime) {
  for await (const _ of runtime.stream(compiled, { messages: [{ role: 'user', content: 'go' }] }));
}

async function floor() {
  for await (const _ of model.stream());
}

export default async function stream() {
  const [plain, watched] = [createRuntime(), createRuntime({ policies: [watcher] })]
  const took = await interleaved({ floor, plain: () => drain(plain), watched: () => drain(watched) }, { ops: CHUNKS })
  const perSecond = (us) => 1 / us
  return [
    row('stream, chunks', 'no policy', perSecond(took.plain.median), 'M/s', {
      best: perSecond(took.plain.best),
      floor: perSecond(took.floor.median),
      goal: '≥ 3',
      holds: perSecond(took.plain.best) >= 3,
    }),
    row('stream, chunks', 'one policy that lets parts pass', perSecond(took.watched.median), 'M/s', {
      best: perSecond(took.watched.best),
      floor: perSecond(took.floor.median),
      goal: '≥ 3',
      holds: perSecond(took.watched.best) >= 3,
    }),
  ]
}

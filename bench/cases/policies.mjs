// Policies in process: what one adds to a node that its selector does not match, and to one that it judges.
import { createRuntime, END, graph, node, policy, START, state } from '@sluice/core'
import { z } from 'zod'
import { interleaved, row } from '../lib/measure.mjs'

const STEPS = 20_000
const State = state({ n: z.number().default(0), a: z.string().default('x'), b: z.string().default('x') })
const step = node('step', State, (s) => ({ n: s.n + 1 }))
const once = (s) => s.n < STEPS
const loop = graph('loop', State).edge(START, step).when(step, once, { then: step, otherwise: END }).check()

const limits = { maxIterations: 1e9 }
const judge = { node: { before: () => ({ action: 'proceed' }) } }
const elsewhere = { reads: 'subject', matches: ({ subject }) => subject.nodeName === 'other' }
const here = { reads: 'call', matches: ({ input }) => input.n < 0 }

export default async function policies() {
  const runtimes = {
    none: createRuntime({ limits }),
    elsewhere: createRuntime({ limits, policies: [policy({ name: 'Gate', seams: judge, match: elsewhere })] }),
    unmatched: createRuntime({ limits, policies: [policy({ name: 'Gate', seams: judge, match: here })] }),
    judged: createRuntime({ limits, policies: [policy({ name: 'Gate', seams: judge })] }),
  }
  const works = Object.fromEntries(
    Object.entries(runtimes).map(([name, runtime]) => [name, () => runtime.run(loop, {})]),
  )
  const took = await interleaved(works, { ops: STEPS })
  const adds = (name) => ({
    median: took[name].median - took.none.median,
    best: took[name].best - took.none.best,
  })
  const [away, unmatched, judged] = [adds('elsewhere'), adds('unmatched'), adds('judged')]
  const work = 'policy in this process, one half'
  return [
    row(work, 'its selector reads the subject and does not match', away.median, 'µs', {
      best: away.best,
      goal: '≤ 0.1',
      holds: away.best <= 0.1,
    }),
    row(work, 'its selector reads the call and does not match', unmatched.median, 'µs', { best: unmatched.best }),
    row(work, 'it proceeds at once', judged.median, 'µs', { best: judged.best }),
  ]
}

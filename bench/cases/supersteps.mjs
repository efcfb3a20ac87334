// A loop of one node: what a superstep costs, with few and with many fields, and with somebody listening.
import { command, createRuntime, END, graph, node, START, send, state } from '@sluice/core'
import { z } from 'zod'
import { interleaved, row } from '../lib/measure.mjs'

const STEPS = 20_000
const runtime = createRuntime({ limits: { maxIterations: 1e9, maxTasks: 1e6 } })

function loop(keys, work) {
  const rest = Object.fromEntries(Array.from({ length: keys - 1 }, (_, i) => [`field${i}`, z.string().default('x')]))
  const State = state({ n: z.number().default(0), ...rest })
  const step = node('step', State, work)
  const once = (s) => s.n < STEPS
  return graph('loop', State).edge(START, step).when(step, once, { then: step, otherwise: END }).check()
}

const sync = (s) => ({ n: s.n + 1 })
const later = async (s) => ({ n: s.n + 1 })

async function bareLoop() {
  let current = { n: 0 }
  while (current.n < STEPS) current = { ...current, ...(await later(current)) }
}

async function listened(compiled) {
  let events = 0
  for await (const _ of runtime.stream(compiled, {})) events++
  return events
}

function fanOut(count) {
  const State = state({ n: z.number().default(0) })
  const leaf = node('leaf', State, () => ({}))
  const sends = Array.from({ length: count }, (_, i) => send(leaf, { n: i }))
  const root = node('root', State, () => command({ goto: sends }), { goto: [leaf] })
  return graph('fan', State).edge(START, root).edge(leaf, END).check()
}

export default async function supersteps() {
  const [three, hundred, threeAsync] = [loop(3, sync), loop(100, sync), loop(3, later)]
  const took = await interleaved(
    {
      floor: bareLoop,
      three: () => runtime.run(three, {}),
      hundred: () => runtime.run(hundred, {}),
      threeAsync: () => runtime.run(threeAsync, {}),
      listened: () => listened(three),
    },
    { ops: STEPS },
  )
  const floor = took.floor.median
  const ratio = took.hundred.median / took.three.median
  return [
    row('superstep, no store', '3 fields, sync node', took.three.median, 'µs', {
      best: took.three.best,
      floor,
      goal: '≤ 0.8',
      holds: took.three.best <= 0.8,
    }),
    row('superstep, no store', '3 fields, async node', took.threeAsync.median, 'µs', {
      best: took.threeAsync.best,
      floor,
      goal: '≤ 0.8',
      holds: took.threeAsync.best <= 0.8,
    }),
    row('superstep, no store', '100 fields', took.hundred.median, 'µs', {
      best: took.hundred.best,
      floor,
      goal: '≤ 1.2 and ≤ 2.5 × 3 fields',
      holds: took.hundred.best <= 1.2 && ratio <= 2.5,
    }),
    row('superstep, no store', '3 fields, a listener', took.listened.median, 'µs', { best: took.listened.best, floor }),
    ...(await fanOuts()),
  ]
}

async function fanOuts() {
  const rows = []
  for (const count of [1_000, 10_000]) {
    const compiled = fanOut(count)
    const floorWork = () => Promise.all(Array.from({ length: count }, async (_, i) => i))
    const took = await interleaved({ floor: floorWork, fan: () => runtime.run(compiled, {}) }, { ops: count })
    rows.push(
      row('fan-out, per task', String(count), took.fan.median, 'µs', {
        best: took.fan.best,
        floor: took.floor.median,
        goal: '≤ 1.5, linear',
        holds: took.fan.best <= 1.5,
      }),
    )
  }
  return rows
}

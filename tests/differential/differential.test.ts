import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { comparePlays } from './compare.ts'
import { DIFFERENCES, type DifferenceId } from './differences.ts'
import { EXAMPLES } from './examples.ts'
import { playOnLangGraph } from './langgraph.ts'
import { answerTo, type Plan, type PlanNode, type Target } from './plan.ts'
import { type Happening, LIMIT } from './play.ts'
import { NAMES, plans } from './random.ts'
import { type Broken, collectOnSluice, playOnSluice } from './sluice.ts'

/** More of them by hand: `DIFFERENTIAL_GRAPHS=5000 DIFFERENTIAL_SEED=7 npx vitest run tests/differential`. */
const numRuns = Number(process.env.DIFFERENTIAL_GRAPHS ?? 300)
const seed = Number(process.env.DIFFERENTIAL_SEED ?? 1)

/** Plays a plan on both, and says how they differ. */
async function compare(plan: Plan, playOurs: (plan: Plan) => Promise<readonly Happening[]>) {
  const met = new Set<DifferenceId>()
  const theirs = await playOnLangGraph(plan, met)
  const ours = await playOurs(plan)
  return { ours, met, parted: comparePlays(plan, ours, theirs, met) }
}

/** What can be known of happenings without looking at supersteps. */
const outside = (happenings: readonly Happening[]) =>
  happenings
    .filter(({ kind }) => kind !== 'superstep')
    .map((happening) => (happening.kind === 'pause' ? { ...happening, before: undefined } : happening))

describe('random graphs, on Sluice and on LangGraph', () => {
  it(
    'take the same supersteps, write the same, ask the same and come to the same, but for the differences on the page',
    async () => {
      const tally = new Map<string, number>()
      const count = (what: string) => tally.set(what, (tally.get(what) ?? 0) + 1)
      const property = fc.asyncProperty(plans, async (plan) => {
        const { ours, met, parted } = await compare(plan, playOnSluice)
        expect(outside(await collectOnSluice(plan, outside(ours).length))).toEqual(outside(ours))
        for (const difference of met) count(`difference ${difference}`)
        count(parted === undefined ? 'to the end' : `as far as ${parted}`)
        for (const happening of ours) {
          count(happening.kind === 'failure' ? `failure ${happening.why}` : happening.kind)
          if (happening.kind === 'pause' && happening.questions.length > 1) count('pause with several questions')
          if (happening.kind === 'superstep' && happening.tasks.length > 1) count('superstep of several tasks')
        }
      })
      await fc.assert(property, { numRuns, seed })
      if (process.env.DIFFERENTIAL_GRAPHS !== undefined) console.log(Object.fromEntries([...tally].toSorted()))
      expect(tally.get('to the end')).toBeGreaterThan(numRuns * 0.8)
      for (const often of ['superstep of several tasks', 'pause with several questions', 'failure node', 'end'])
        expect([often, tally.get(often)]).toEqual([often, expect.toSatisfy((times) => times > numRuns / 5)])
    },
    Math.max(60_000, numRuns * 1_000),
  )
})

describe('a known difference', () => {
  it.each(EXAMPLES.map((example) => [`${example.id}: ${example.shows}`, example] as const))(
    '%s',
    async (_, { id, plan, parts }) => {
      const { met, parted } = await compare(plan, playOnSluice)
      expect([...met]).toContain(id)
      expect(parted).toBe(parts ? id : undefined)
    },
  )
  it('has an example, and a row on the page', () => {
    const page = readFileSync(new URL('../../docs/differences.md', import.meta.url), 'utf8')
    const [section = ''] = page.split('\n## LangGraph\n')[1]?.split('\n## ') ?? []
    expect([...section.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, id]) => id)).toEqual(DIFFERENCES)
    expect([...new Set(EXAMPLES.map(({ id }) => id))]).toEqual(DIFFERENCES)
  })
})

const eachNode = (change: (node: PlanNode) => PlanNode) => (plan: Plan) => ({ ...plan, nodes: plan.nodes.map(change) })
const inReverse = (name: string) => `${NAMES.toSorted().toReversed().indexOf(name)}`
const plain = (targets: readonly Target[]) => targets.filter((target) => !('send' in target))

describe('the comparison', () => {
  it.each<{ name: string; broken?: Broken; change?: (plan: Plan) => Plan }>([
    { name: 'merges updates by name, in reverse', broken: { alias: inReverse } },
    { name: 'runs a node for each that leads to it', broken: { twice: true } },
    {
      name: 'hands over the answer to another question',
      broken: { answer: (asked) => answerTo({ ...asked, nth: 0 }) },
    },
    { name: 'allows a superstep less', broken: { limit: LIMIT - 1 } },
    { name: 'goes on before everything is answered', change: (plan) => ({ ...plan, answers: 'all' }) },
    { name: 'loses a write', change: eachNode((node) => ({ ...node, writes: node.writes.slice(1) })) },
    {
      name: 'takes the other way',
      change: eachNode((node) => {
        const { way } = node
        return way.kind === 'when' ? { ...node, way: { ...way, then: way.otherwise, otherwise: way.then } } : node
      }),
    },
    {
      name: 'forgets what was sent',
      change: eachNode((node) => {
        const { way } = node
        return way.kind === 'choose' ? { ...node, way: { ...way, then: plain(way.then) } } : node
      }),
    },
    { name: 'does not stop at a failure', change: eachNode((node) => ({ ...node, fails: false })) },
  ])('notices a copy of us that $name', async ({ broken, change = (plan) => plan }) => {
    const property = fc.asyncProperty(plans, async (plan) => {
      await compare(plan, () => playOnSluice(change(plan), broken))
    })
    const { failed, errorInstance } = await fc.check(property, { numRuns: 100, seed: 1, endOnFailure: true })
    expect(failed).toBe(true)
    expect((errorInstance as Error).message).toMatch(/^not the same: /)
  })
})

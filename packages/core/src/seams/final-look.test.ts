import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Answer, noting, says, settle, trying } from '../../testing/play.ts'
import { MiddlewareError, scripted } from '../index.ts'

const proceed = { action: 'proceed' }
const before = (name: string, answer: Answer) => says(name, { 'toolCall.before': answer })
const rewrite = (text: string) => ({ action: 'modify', input: { text } })

/** Calls a tool from a node past these policies. */
async function call(policies: readonly ReturnType<typeof says>[]) {
  const act = noting()
  const { graph, seen } = trying((ctx) => ctx.callTool(act, { text: 'given' }))
  return { ...(await settle({ graph, policies })), seen, ran: act.ran }
}

const revisits = (policy: ReturnType<typeof says>) => policy.asked.map(({ revisit, input }) => [revisit, input])

describe('a policy whose judgement is out of date', () => {
  it('is consulted once more, with the final value, however often it was changed after it', async () => {
    const watch = before('Watch', proceed)
    const { ran } = await call(
      [watch, before('B', rewrite('b')), before('C', proceed), before('D', rewrite('d'))].map(once),
    )
    expect(revisits(watch)).toEqual([
      [false, { text: 'given' }],
      [true, { text: 'd' }],
    ])
    expect(ran).toEqual([{ text: 'd' }])
  })

  it('may still refuse what it is shown then', async () => {
    const gate = before('Gate', ({ input }) => (input.text === 'rm' ? { action: 'reject', reason: 'no' } : proceed))
    const { seen, ran } = await call([gate, before('Rewrite', rewrite('rm'))])
    expect(seen.error).toMatchObject({ code: 'REFUSED', reason: 'no' })
    expect(ran).toEqual([])
  })

  it('may not change it again: that is its failure, the error names both, and nothing runs', async () => {
    const { error, ran } = await call([before('Stubborn', rewrite('mine')), before('Other', rewrite('theirs'))])
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toBe(
      'policy "Stubborn" (plugin in-process) failed at toolCall.before of node "step": it changed again what policy ' +
        '"Other" had changed after it, and nobody would judge the result.',
    )
    expect(error).toMatchObject({ at: { policy: 'Stubborn' } })
    expect(ran).toEqual([])
  })

  it('proceeds when it gives back an equal value', async () => {
    const same = before('Same', ({ input }) => ({ action: 'modify', input: { ...input } }))
    expect((await call([same, before('Other', rewrite('theirs'))])).ran).toEqual([{ text: 'theirs' }])
  })

  it('may give nothing that does not fit, either', async () => {
    const broken = before('Broken', (_, { revisit }) => (revisit ? { action: 'modify', input: { text: 5 } } : proceed))
    const { error, ran } = await call([broken, before('Other', rewrite('theirs'))])
    expect((error as Error).message).toContain('policy "Broken" (plugin in-process) failed')
    expect(ran).toEqual([])
  })
})

describe('nobody is consulted once more', () => {
  it('when nothing was changed', async () => {
    const watch = before('Watch', proceed)
    await call([watch, before('Other', proceed)])
    expect(revisits(watch)).toEqual([[false, { text: 'given' }]])
  })

  it('when a modify leaves the value equal, whatever the order of its keys: it is a proceed', async () => {
    const watch = says('Watch', { 'modelCall.before': proceed })
    const same = says('Same', {
      'modelCall.before': { action: 'modify', input: { messages: [{ content: 'hello', role: 'user' }] } },
    })
    const model = scripted(['hi'])
    const { graph } = trying((ctx) => ctx.callModel(model, { messages: [{ role: 'user', content: 'hello' }] }))
    const { counts } = await settle({ graph, policies: [watch, same] })
    expect(watch.asked).toHaveLength(1)
    expect(counts.decisions).toBe(0)
  })

  it('who stands behind the last change, for they saw it', async () => {
    const last = before('Last', proceed)
    await call([before('First', rewrite('new')), last])
    expect(revisits(last)).toEqual([[false, { text: 'new' }]])
  })
})

/** A rewriting policy that lets the final value stand. */
function once(policy: ReturnType<typeof says>): ReturnType<typeof says> {
  return { ...policy, consult: (at) => (at.revisit && policy.name !== 'Watch' ? proceed : policy.consult(at)) }
}

type Kind =
  | { readonly kind: 'watch' }
  | { readonly kind: 'rewrite' | 'stubborn'; readonly word: string }
  | { readonly kind: 'gate'; readonly word: string }

const word = fc.constantFrom('a', 'b', 'c')
const kind: fc.Arbitrary<Kind> = fc.oneof(
  fc.constant({ kind: 'watch' } as const),
  fc.record({ kind: fc.constantFrom('rewrite', 'stubborn'), word }),
  fc.record({ kind: fc.constant('gate' as const), word }),
)

const ofKind = (of: Kind, i: number) =>
  before(`policy ${i}`, ({ input }, { revisit }) => {
    if (of.kind === 'gate') return input.text === of.word ? { action: 'reject', reason: of.word } : proceed
    return of.kind === 'watch' || (of.kind === 'rewrite' && revisit) ? proceed : rewrite(of.word)
  })

describe('whatever the policies do', () => {
  it('what ran is the very frozen value that each of them was shown last, or gave; else nothing ran', async () => {
    const property = fc.asyncProperty(fc.array(kind, { minLength: 1, maxLength: 6 }), async (kinds) => {
      const policies = kinds.map(ofKind)
      const { ran, seen, error } = await call(policies)
      if (ran.length === 0) return seen.error !== undefined || error instanceof MiddlewareError
      expect(ran).toHaveLength(1)
      expect(Object.isFrozen(ran[0])).toBe(true)
      for (const [i, { asked }] of policies.entries()) {
        const [last, of] = [asked.at(-1), kinds[i]]
        const gaveItItself = last?.revisit === false && of !== undefined && 'word' in of && of.word === ran[0]?.text
        if (!gaveItItself) expect(last?.input).toBe(ran[0])
        expect(asked.length).toBeLessThanOrEqual(2)
      }
    })
    await fc.assert(property, { numRuns: 300 })
  })

  it('those in shadow, off, or that do not match make no difference to those that enforce', async () => {
    const modes = fc.constantFrom('enforce', 'shadow', 'off', 'elsewhere')
    const property = fc.asyncProperty(
      fc.array(fc.tuple(kind, modes), { minLength: 1, maxLength: 6 }),
      async (mixed) => {
        const policies = mixed.map(([of, mode], i) => {
          const rules = mode === 'elsewhere' ? { match: { reads: 'call', matches: () => false } as const } : { mode }
          return { ...ofKind(of, i), ...rules }
        })
        const alone = mixed.flatMap(([of, mode], i) => (mode === 'enforce' ? [ofKind(of, i)] : []))
        const [played, bare] = [await call(policies), await call(alone)]
        expect(played.ran).toEqual(bare.ran)
        expect([played.status, played.seen.error]).toEqual([bare.status, bare.seen.error])
        const asked = policies.filter((_, i) => mixed[i]?.[1] === 'enforce').map((policy) => revisits(policy))
        expect(asked).toEqual(alone.map((policy) => revisits(policy)))
        for (const [i, { asked: of }] of policies.entries()) {
          if (mixed[i]?.[1] === 'shadow') expect(of.length).toBeLessThanOrEqual(1)
          if (['off', 'elsewhere'].includes(mixed[i]?.[1] as string)) expect(of).toEqual([])
        }
      },
    )
    await fc.assert(property, { numRuns: 100 })
  })

  it('Z17: they are consulted in load order in both halves, and the first verdict but pass ends the walk of after', async () => {
    const verdicts = fc.array(fc.constantFrom('pass', 'replace', 'reject'), { minLength: 1, maxLength: 6 })
    const property = fc.asyncProperty(verdicts, async (actions) => {
      const order: string[] = []
      const policies = actions.map((action, i) =>
        says(`${i}`, {
          'toolCall.before': () => {
            order.push(`before ${i}`)
            return proceed
          },
          'toolCall.after': () => {
            order.push(`after ${i}`)
            return { action, value: `${i}`, reason: `${i}` }
          },
        }),
      )
      const { seen } = await call(policies)
      const ends = actions.findIndex((action) => action !== 'pass')
      const consulted = ends < 0 ? actions : actions.slice(0, ends + 1)
      expect(order).toEqual([...actions.map((_, i) => `before ${i}`), ...consulted.map((_, i) => `after ${i}`)])
      if (actions[ends] === 'reject') expect(seen.error).toMatchObject({ reason: `${ends}` })
      else expect(seen.value).toBe(ends < 0 ? 'done' : `${ends}`)
    })
    await fc.assert(property, { numRuns: 100 })
  })
})

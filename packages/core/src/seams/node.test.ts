import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Answer, eventsOf, ofType, oneNode, says, settle, Text } from '../../testing/play.ts'
import { append, END, graph, MiddlewareError, middleware, node, START, state } from '../index.ts'
import { Gates } from '../run/calls/gates.ts'
import { nodeSpec } from '../run/calls/node-call.ts'

const proceed = { action: 'proceed' }
const pass = { action: 'pass' }
const before = (name: string, answer: Answer) => says(name, { 'node.before': answer })
const after = (name: string, answer: Answer) => says(name, { 'node.after': answer })

const echo = () => oneNode(({ text }) => ({ made: `made of ${text}` }))
const failing = () =>
  oneNode(() => {
    throw new Error('the node broke')
  })

describe('before a node', () => {
  it('F1: every node is judged, each with its name and type, and with the whole state it is given', async () => {
    const [first, last] = [node('first', Text, () => ({ text: 'new' })), node('last', Text, () => undefined)]
    const both = graph('both', Text).edge(START, first).edge(first, last).edge(last, END).check()
    const watch = before('Watch', proceed)
    await settle({ graph: both, policies: [watch] })
    expect(watch.asked.map(({ subject, input }) => ({ subject, input }))).toEqual([
      { subject: { nodeName: 'first', nodeType: 'Node' }, input: { text: 'given', made: 'nothing' } },
      { subject: { nodeName: 'last', nodeType: 'Node' }, input: { text: 'new', made: 'nothing' } },
    ])
  })

  it('F2: a modify is the whole new input of that execution; the state itself stays', async () => {
    const watching = oneNode((state) => ({ made: JSON.stringify(state) }))
    const { state } = await settle({
      graph: watching,
      policies: [before('Rewrite', { action: 'modify', input: { text: 'changed' } })],
    })
    expect(state).toEqual({ text: 'given', made: '{"text":"changed"}' })
  })

  it('F3: a replace answers for it: it does not run, node.after judges the value, and the run goes on', async () => {
    let ran = false
    const graph = oneNode(() => {
      ran = true
    })
    const watch = after('Watch', pass)
    const dry = before('DryRun', { action: 'replace', value: { made: 'dry' } })
    const { state, warnings } = await settle({ graph, policies: [dry, watch] })
    expect({ ran, made: state.made }).toEqual({ ran: false, made: 'dry' })
    expect(watch.asked[0]).toMatchObject({ outcome: { ok: true, value: { made: 'dry' } }, substituted: 'DryRun' })
    expect(warnings[0]?.message).toBe('policy "DryRun" supplied a result for node "step"; it did not run.')
  })

  it('F4: a reject ends the run and names policy and reason', async () => {
    const { status, error } = await settle({
      graph: echo(),
      policies: [before('Gate', { action: 'reject', reason: 'no' })],
    })
    expect(status).toBe('failed')
    expect(error).toMatchObject({
      name: 'RefusedError',
      code: 'REFUSED',
      message: 'policy "Gate" refused node "step": no',
      reason: 'no',
    })
  })

  it('a suspend in a run without a thread says what is missing', async () => {
    const { error } = await settle({
      graph: echo(),
      policies: [before('Gate', { action: 'suspend', ask: { sure: '?' } })],
    })
    expect(error).toMatchObject({ code: 'SUSPEND_NEEDS_THREAD' })
    expect((error as Error).message).toContain('policy "Gate" wants to ask a person about node "step"')
  })
})

describe('after a node', () => {
  it('F5: its output is judged; a replace takes its place, with a warning; a fail ends the run', async () => {
    const swap = after('Swap', { action: 'replace', value: { made: 'swapped' } })
    const swapped = await settle({ graph: echo(), policies: [swap] })
    expect(swap.asked[0]?.outcome).toEqual({ ok: true, value: { made: 'made of given' } })
    expect(swapped.state.made).toBe('swapped')
    expect(swapped.warnings[0]?.message).toBe(
      'policy "Swap" supplied a result for node "step"; its own result is not used.',
    )
    const failed = await settle({ graph: echo(), policies: [after('Strict', { action: 'fail', reason: 'too short' })] })
    expect(failed.error).toMatchObject({
      code: 'FAILED_BY_MIDDLEWARE',
      message: 'policy "Strict" failed node "step": too short',
    })
  })

  it('F6: a retry is no verdict of this half', async () => {
    const { error } = await settle({ graph: echo(), policies: [after('Again', { action: 'retry' })] })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toContain(
      'answered "retry", which node.after does not admit; it admits: pass, replace, fail',
    )
  })

  it('F7: a failure that nodeError lets stand is judged too, and may be rescued even where no policy is at nodeError', async () => {
    const rescue = after('Rescue', { action: 'replace', value: { made: 'rescued' } })
    const watched = await settle({ graph: failing(), policies: [says('Watch', { 'nodeError.after': pass }), rescue] })
    const alone = await settle({ graph: failing(), policies: [rescue] })
    expect([watched.state.made, alone.state.made]).toEqual(['rescued', 'rescued'])
    expect(rescue.asked[0]?.outcome).toEqual({ ok: false, error: { name: 'Error', message: 'the node broke' } })
    expect(alone.warnings[0]?.message).toBe(
      'policy "Rescue" supplied a result for node "step"; it had failed: the node broke',
    )
  })

  it('F8: of two attempts only the last is judged, while each is judged before, with its number', async () => {
    let attempts = 0
    const graph = oneNode(() => {
      if (++attempts === 1) throw new Error('once')
    })
    const both = says('Both', { 'node.before': proceed, 'node.after': pass, 'nodeError.after': { action: 'retry' } })
    await settle({ graph, policies: [both] })
    expect(both.asked.map(({ at, attempt, maxAttempts }) => [at, attempt, maxAttempts])).toEqual([
      ['node.before', 1, 3],
      ['nodeError.after', 1, 3],
      ['node.before', 2, 3],
      ['node.after', 2, 3],
    ])
  })

  it('F9: a policy that fails on top of a failed node tells both', async () => {
    const broken = after('Broken', () => {
      throw new Error('and so did I')
    })
    const { error } = await settle({ graph: failing(), policies: [broken] })
    expect(error).toMatchObject({
      message:
        'policy "Broken" (plugin in-process) failed at node.after of node "step": and so did I. ' +
        'The step itself had failed: the node broke',
      cause: new Error('the node broke'),
    })
  })

  it('where nobody is subscribed, the gate is the node’s execution and nothing else', () => {
    const watched = after('Watch', pass)
    const elsewhere = middleware({ name: 'elsewhere', afterModel: () => undefined })
    expect(new Gates([]).node).toBe(nodeSpec.perform)
    expect(new Gates([], [elsewhere]).node).toBe(nodeSpec.perform)
    expect(new Gates([watched]).node).not.toBe(nodeSpec.perform)
  })

  it('F10: nobody subscribed, nobody consulted: the node is the call itself', async () => {
    const { counts, warnings } = await settle({
      graph: echo(),
      policies: [says('Tools', { 'toolCall.before': proceed })],
    })
    expect({ consultations: counts.consultations, warnings }).toEqual({ consultations: 0, warnings: [] })
  })

  it('events with a value are published after it, with the value it left', async () => {
    const swap = after('Swap', { action: 'replace', value: { made: 'swapped' } })
    const events = await eventsOf({ graph: echo(), policies: [swap] })
    expect(ofType(events, 'node_complete')).toMatchObject([{ output: { made: 'swapped' }, substituted: 'Swap' }])
    expect(JSON.stringify(events)).not.toContain('made of given')
  })
})

describe('what a policy gives', () => {
  const Log = state({ count: z.number().default(0), log: append(z.string()) })
  const step = node('step', Log, () => ({ log: ['made'] }))
  const logging = graph('logging', Log).edge(START, step).edge(step, END).check()

  it.each([
    { name: 'a field that does not exist', answer: { action: 'modify', input: { word: 'x' } }, says: '"word"' },
    { name: 'a value that does not fit', answer: { action: 'modify', input: { count: 'many' } }, says: 'count' },
    { name: 'no object', answer: { action: 'modify', input: 'x' }, says: 'object' },
  ])('as input is checked against the state, and the node does not run: $name', async ({ answer, says }) => {
    let ran = false
    const watched = node('step', Log, () => {
      ran = true
    })
    const checked = graph('checked', Log).edge(START, watched).edge(watched, END).check()
    const { error } = await settle({ graph: checked, policies: [before('Broken', answer)] })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toContain(
      'policy "Broken" (plugin in-process) failed at node.before of node "step"',
    )
    expect((error as Error).message).toContain(says)
    expect(ran).toBe(false)
  })

  it.each([
    { name: 'of a node that did not run', policy: before('Broken', { action: 'replace', value: { word: 'x' } }) },
    { name: 'of a node that ran', policy: after('Broken', { action: 'replace', value: { word: 'x' } }) },
  ])('as output is checked against the state: $name', async ({ policy }) => {
    const { error } = await settle({ graph: logging, policies: [policy] })
    expect(error).toBeInstanceOf(MiddlewareError)
    expect((error as Error).message).toContain('"word"')
  })

  it('as output goes through the reducers, and { $replace } sets a whole value', async () => {
    const value = (log: unknown) => ({ action: 'replace', value: { log } })
    const added = await settle({ graph: logging, input: { log: ['old'] }, policies: [after('Add', value(['new']))] })
    const set = await settle({
      graph: logging,
      input: { log: ['old'] },
      policies: [after('Set', value({ $replace: ['new'] }))],
    })
    expect([added.state.log, set.state.log]).toEqual([['old', 'new'], ['new']])
  })
})

import {
  createRuntime,
  END,
  graph,
  type Json,
  node,
  type Policy,
  type RunEvent,
  START,
  state,
  tool,
} from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkAnswer } from '../machine/answers.ts'
import { load } from '../testing/policies.ts'

const State = state({
  args: z.any(),
  tool: z.string().default('shell'),
  result: z.any().default(null),
  then: z.any().default(null),
})
const ran: Json[] = []
const echo = tool('shell', {
  description: 'Says what it was told.',
  input: z.looseObject({}),
  run: (args) => {
    ran.push(args as Json)
    if ((args as { fails?: string }).fails) throw new Error(String((args as { fails?: string }).fails))
    return { said: args as Json }
  },
})
const web = tool('web', { description: 'Fetches.', input: z.looseObject({}), run: () => ({ page: 'x' }) })

/** A flow that calls the tool of that name, and then, if it is told to, the shell. */
const caller = node('caller', State, async (s, ctx) => {
  const result = await ctx.callTool(s.tool, s.args)
  const then = s.then === null ? undefined : await ctx.callTool('shell', s.then)
  return { result, ...(then === undefined ? {} : { then }) }
})
const flow = graph('calls', State).edge(START, caller).edge(caller, END).check()

const policiesOf = async (rules: string): Promise<readonly Policy[]> =>
  (await load({ 'sluice.yaml': `policies:\n${rules.replace(/^/gm, '  ')}` })).policies

async function run(rules: string, input: { args: object; tool?: string; then?: object }, thread?: string) {
  ran.length = 0
  const runtime = createRuntime({
    policies: await policiesOf(rules),
    tools: [echo, web],
    checkJson: checkAnswer,
  })
  const { status, state, error } = await runtime.settle(flow, input as never, { ...(thread && { thread }) })
  const { result, then } = (state ?? {}) as { result?: Json; then?: Json }
  return { status, result, then, error: error as Error & { code?: string }, runtime }
}

const AT = 'seam: toolCall.before, '

describe('a rule', () => {
  it('refuses where its condition holds, and proceeds where it does not', async () => {
    const rule = `- rule: no-destructive-shell
  seam: toolCall.before
  match: subject.toolName == "shell"
  when: re(input.cmd, "rm -rf|sudo")
  verdict: reject
  reason: That command is not allowed on this host.`
    expect(await run(rule, { args: { cmd: 'ls' } })).toMatchObject({
      status: 'completed',
      result: { said: { cmd: 'ls' } },
    })
    const refused = await run(rule, { args: { cmd: 'sudo ls' } })
    expect(refused.status).toBe('failed')
    expect(refused.error.message).toContain('That command is not allowed on this host.')
    expect(ran).toEqual([])
  })
  it('without a condition holds always', async () => {
    const { status } = await run(`- { rule: r, ${AT} verdict: reject, reason: no }`, { args: {} })
    expect(status).toBe('failed')
  })
  it('says why with what it was shown', async () => {
    const { error } = await run(
      `- { rule: r, ${AT} verdict: reject, reason: 'no \${input.cmd} by \${subject.caller}' }`,
      {
        args: { cmd: 'ls' },
      },
    )
    expect(error.message).toContain('no ls by node')
  })
  it('changes the input, as a template says', async () => {
    const { result } = await run(
      `- { rule: r, ${AT} verdict: modify, input: { cmd: 'echo \${input.cmd}', n: '\${size(input.cmd)}' } }`,
      {
        args: { cmd: 'ls' },
      },
    )
    expect(result).toEqual({ said: { cmd: 'echo ls', n: 2 } })
  })
  it('answers for the call', async () => {
    const { result } = await run(`- { rule: r, ${AT} verdict: replace, value: [1, null, '\${input.cmd}'] }`, {
      args: { cmd: 'ls' },
    })
    expect(result).toEqual([1, null, 'ls'])
    expect(ran).toEqual([])
  })
  it('withholds a result', async () => {
    const rule = `- { rule: r, seam: toolCall.after, when: 'outcome.ok && size(outcome.value.said) > 1', verdict: reject, reason: too much }`
    expect((await run(rule, { args: { a: 1 } })).status).toBe('completed')
    expect((await run(rule, { args: { a: 1, b: 2 } })).error.message).toContain('too much')
  })
  it('retries a node, so long as it says', async () => {
    const rule = `- { rule: r, seam: nodeError.after, when: 'outcome.error.message.contains("429") && attempt < 3', verdict: retry, delayMs: '\${attempt}' }`
    await run(rule, { args: { fails: '429 Too Many Requests' } })
    expect(ran).toHaveLength(3)
    await run(rule, { args: { fails: '500' } })
    expect(ran).toHaveLength(1)
  })
  it('is consulted in the order of the file, and sees what the ones before it left', async () => {
    const rules = `- { rule: a, ${AT} verdict: modify, input: { cmd: '\${input.cmd}1' } }
- { rule: b, ${AT} when: 'input.cmd != "x12"', verdict: modify, input: { cmd: '\${input.cmd}2' } }`
    const { error } = await run(rules, { args: { cmd: 'x' } })
    // The first is asked again about what the second made of it, and would change it anew.
    expect(error.message).toContain('it changed again what policy "b" had changed after it')
    const twice = rules.replace(
      `${AT} verdict: modify, input: { cmd: '\${input.cmd}1' }`,
      `${AT} when: 'input.cmd == "x"', verdict: modify, input: { cmd: x1 }`,
    )
    expect((await run(twice, { args: { cmd: 'x' } })).result).toEqual({ said: { cmd: 'x12' } })
  })
  it.each([
    { where: 'in a turn', thread: undefined },
    { where: 'on a thread', thread: 't' },
  ])('reads labels: once a result is untrusted, no shell $where', async ({ thread }) => {
    const rules = `- { rule: taint, seam: toolCall.after, match: 'subject.toolName == "web"', verdict: pass, labels: [untrusted] }
- { rule: no-shell, ${AT} match: 'subject.toolName == "shell"', when: '"untrusted" in labels', verdict: reject, reason: tainted }`
    expect((await run(rules, { args: { cmd: 'ls' } }, thread)).status).toBe('completed')
    const tainted = await run(rules, { tool: 'web', args: {}, then: { cmd: 'ls' } }, thread)
    expect(tainted.error.message).toContain('tainted')
    expect(ran).toEqual([])
  })
  it('may be about one model call', async () => {
    const [policy] = await policiesOf(
      `- { rule: r, seam: modelCall.before, when: 'input.messages.size() > 1', verdict: modify, input: { model: small } }`,
    )
    expect(policy?.subscribes('modelCall', 'before')).toBe(true)
    expect(policy?.subscribes('modelCall', 'after')).toBe(false)
  })
})

describe('a rule that asks a person', () => {
  const rule = `- { rule: ask-first, ${AT} when: 'input.amount > 100', verdict: suspend, ask: 'May \${input.amount} be paid?', reason: not paid }`
  const paused = async () => {
    const { runtime, status } = await run(rule, { args: { amount: 200 } }, 't')
    expect(status).toBe('paused')
    return runtime
  }
  const resumed = async (answer: unknown) => {
    const events: RunEvent[] = []
    const stream = (await paused()).stream(flow, undefined, { thread: 't', resume: answer })
    for await (const event of stream) events.push(event)
    const { status, error } = await stream.outcome
    return { status, message: (error as Error | undefined)?.message ?? '' }
  }

  it('asks only where its condition holds', async () => {
    expect((await run(rule, { args: { amount: 1 } }, 't')).status).toBe('completed')
  })
  it('shows the question, made of what it was shown', async () => {
    const { runtime } = await run(rule, { args: { amount: 200 } }, 't')
    const [ask] = (await runtime.stateAt(flow, 't')).asks
    expect(ask).toMatchObject({ askedBy: 'policy:ask-first', payload: { question: 'May 200 be paid?' } })
  })
  it('says who may answer, and no data can be put into that', async () => {
    const asking = (approvers: string) =>
      run(
        `- { rule: r, ${AT} verdict: suspend, ask: { question: 'May it?', approvers: '${approvers}' } }`,
        { args: {} },
        't',
      )
    const { runtime } = await asking('principal.id == "ann"')
    expect((await runtime.stateAt(flow, 't')).asks).toMatchObject([{ approvers: 'principal.id == "ann"' }])
    await expect(asking('principal.id == "${input.boss}"')).rejects.toThrow(
      'it is an expression over "principal", and no template',
    )
    await expect(asking('principal.nme == "ann"')).rejects.toThrow('there is no field "nme" here')
  })
  it.each([
    { answer: true, status: 'completed', why: '' },
    { answer: { approved: true }, status: 'completed', why: '' },
    { answer: false, status: 'failed', why: 'not paid' },
    { answer: { approved: false }, status: 'failed', why: 'not paid' },
    { answer: { approved: false, reason: 'too dear' }, status: 'failed', why: 'too dear' },
  ])('an answer of $answer: $status $why', async ({ answer, status, why }) => {
    const { status: came, message } = await resumed(answer)
    expect(came).toBe(status)
    expect(message).toContain(why)
  })
})

describe('a rule that cannot be evaluated', () => {
  const rule = `- { rule: r, ${AT} when: 'input.path == "secret"', verdict: reject, reason: no`
  it('has failed, and the run ends with its name, its place and no value', async () => {
    const { status, error } = await run(`${rule} }`, { args: { cmd: 'marker-4711' } })
    expect(status).toBe('failed')
    expect(error.message).toContain('"when" of rule "r" (sluice.yaml:2) cannot be evaluated: there is no field "path"')
    expect(error.message).not.toContain('marker-4711')
    expect(ran).toEqual([])
  })
  it('says neither true nor false: the same', async () => {
    const { error } = await run(`- { rule: r, ${AT} when: input.cmd, verdict: reject, reason: no }`, {
      args: { cmd: 'ls' },
    })
    expect(error.message).toContain('says neither true nor false')
  })
})

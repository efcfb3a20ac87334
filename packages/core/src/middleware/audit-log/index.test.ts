import { describe, expect, it } from 'vitest'
import { agentGraph, calls, numbered, strict, user } from '../../../testing/agent.ts'
import { Clock } from '../../../testing/clock.ts'
import { says } from '../../../testing/play.ts'
import {
  AuditLogMiddleware,
  type AuditLogOptions,
  type AuditRecord,
  createRuntime,
  MemoryStore,
  Middleware,
  middleware,
  type Policy,
  scripted,
  type ToolMiddlewareContext,
} from '../../index.ts'

const T = { thread: 't' }
const LOOK = calls(['look', 1])

/** A log that is held in memory. */
function logging(options: Partial<AuditLogOptions> = {}) {
  const records: AuditRecord[] = []
  const told: string[] = []
  const sink = {
    write: (line: string) => {
      told.push(line)
      records.push(JSON.parse(line))
    },
    flush: () => void told.push('flush'),
  }
  return { records, told, audit: new AuditLogMiddleware({ sink, ...options }) }
}

/** What each line is about, in words. */
const story = (records: readonly AuditRecord[]) =>
  records.map(({ type, subject, outcome, by, error }) =>
    [type, subject.name, outcome, by, error?.code ?? error?.name].filter(Boolean).join(' '),
  )

/** An agent that looks once and answers, under an audit log and what else. */
async function audited(
  options: Partial<AuditLogOptions>,
  own: readonly Middleware[] = [],
  policies: readonly Policy[] = [],
) {
  const { audit, ...log } = logging(options)
  const { tools } = numbered('look')
  const model = strict(
    [LOOK, { content: 'secret answer', usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 } }],
    'm',
  )
  const agent = agentGraph({ model, tools, middleware: [audit, ...own] })
  const outcome = await createRuntime({ platform: new Clock(), policies }).settle(agent, user('secret question'), T)
  return { ...log, outcome }
}

describe('an audit log', () => {
  it('has a line for the run, and one before and after each call of a model and a tool', async () => {
    const { records } = await audited({})
    expect(story(records)).toEqual([
      'run_start chat',
      'model_call m',
      'model_result m ok',
      'tool_call look',
      'tool_result look ok',
      'model_call m',
      'model_result m ok',
      'run_end chat completed',
    ])
  })

  it('says who, where, when, and how long it took, and nothing of what was said', async () => {
    const { records, told } = await audited({})
    expect(records[4]).toEqual({
      type: 'tool_result',
      time: '2026-01-01T00:00:00.000Z',
      seq: 5,
      thread: 't',
      branch: 'main',
      run: expect.any(String),
      turn: expect.any(String),
      task: expect.any(String),
      seam: 'toolCall',
      subject: { kind: 'tool', name: 'look', source: 'code', caller: 'model', callId: 'call-1-1', node: 'agent' },
      attempt: 1,
      durationMs: 0,
      outcome: 'ok',
    })
    expect(records[6]).toMatchObject({ subject: { kind: 'model', node: 'agent', round: 2 }, usage: { totalTokens: 3 } })
    expect(told.join()).not.toContain('secret')
    expect(told.at(-1)).toBe('flush')
  })

  it('has what was said only where it is asked for, and digests in the same way', async () => {
    const { records } = await audited({ payload: true, digests: true })
    expect(records[1]?.input).toMatchObject({ messages: [{ content: 'secret question' }] })
    expect(records[3]).toMatchObject({ input: { n: 1 }, inputDigest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) })
    expect(records[4]).toMatchObject({ output: 'look 1 done' })
    expect(records[6]).toMatchObject({ output: { content: 'secret answer' } })
  })

  it('says who refused a call and why, and who supplied a result', async () => {
    const no = middleware({ name: 'no', beforeTool: (ctx) => ctx.reject('not today') })
    const { records } = await audited({}, [no])
    expect(records.find(({ type }) => type === 'tool_result')).toMatchObject({
      outcome: 'refused',
      by: 'no',
      reason: 'not today',
    })
    const policy = says('Guard', { 'toolCall.before': { action: 'reject', reason: 'never' } })
    const guarded = await audited({}, [], [policy])
    expect(story(guarded.records)[4]).toBe('tool_result look refused Guard REFUSED')
    const stub = middleware({ name: 'stub', beforeTool: (ctx) => ctx.answer('made up') })
    expect(story((await audited({}, [stub])).records)[4]).toBe('tool_result look ok stub')
  })

  it('has the name and the code of what failed, and never its text', async () => {
    const { records, audit, told } = logging()
    const agent = agentGraph({ model: scripted([new TypeError('about secret things')]), middleware: [audit] })
    await createRuntime().settle(agent, user('hello'))
    expect(story(records).slice(-2)).toEqual([
      'model_result scripted failed TypeError',
      'run_end chat failed TypeError',
    ])
    expect(told.join()).not.toContain('secret')
  })

  it('shows a call that was given up: it has no result', async () => {
    let left = 1
    const again = middleware({ name: 'again', afterModel: (ctx) => (left-- > 0 ? ctx.retry() : undefined) })
    const { records, audit } = logging()
    const agent = agentGraph({ model: scripted(['a', 'b']), middleware: [audit, again] })
    await createRuntime().run(agent, user('hello'))
    expect(records.map(({ type, attempt }) => `${type} ${attempt ?? ''}`.trim())).toEqual([
      'run_start',
      'model_call 1',
      'model_call 2',
      'model_result 2',
      'run_end',
    ])
  })

  it('shows what people are asked, and goes on in another process', async () => {
    class Gate extends Middleware {
      override beforeTool(ctx: ToolMiddlewareContext) {
        return ctx.answered === undefined ? ctx.suspend({ question: 'secret?' }) : undefined
      }
    }
    const store = new MemoryStore()
    const { tools } = numbered('look')
    const model = strict([calls(['look', 1], ['look', 2]), 'done'], 'm')
    const [first, second] = [logging(), logging()]
    const graphOf = (audit: AuditLogMiddleware) => agentGraph({ model, tools, middleware: [audit, new Gate()] })
    const { asks } = await createRuntime({ store }).run(graphOf(first.audit), user('look'), T)
    await createRuntime({ store }).resume(graphOf(second.audit), 't', new Map(asks.map(({ key }) => [key, true])))
    expect(story(first.records).slice(5)).toEqual([...asks.map(({ key }) => `ask ${key} Gate`), 'run_end chat paused'])
    expect(second.records[0]).toMatchObject({ type: 'run_start', resuming: true, turn: first.records[0]?.turn })
    expect(story(second.records).filter((line) => line.startsWith('tool_result'))).toEqual([
      'tool_result look ok',
      'tool_result look ok',
    ])
    expect([...first.told, ...second.told].join()).not.toContain('secret')
  })

  it('changes nothing of a run', async () => {
    const { tools } = numbered('look')
    const play = async (own: readonly Middleware[]) => {
      const store = new MemoryStore()
      const runtime = createRuntime({ platform: new Clock(), store })
      const agent = agentGraph({ model: strict([LOOK, 'done']), tools, middleware: own })
      const { state, counts, warnings } = await runtime.run(agent, user('look'), T)
      return {
        state,
        supersteps: counts.supersteps,
        warnings,
        types: (await runtime.history('t')).map(({ type }) => type),
      }
    }
    expect(await play([logging().audit])).toEqual(await play([]))
  })
})

describe('a sink that fails', () => {
  const broken = (fails: (line: AuditRecord) => boolean) => {
    const records: AuditRecord[] = []
    const write = (line: string): void => {
      const record = JSON.parse(line) as AuditRecord
      if (fails(record)) throw new Error('disk full')
      records.push(record)
    }
    return { records, sink: { write } }
  }

  it('ends the run before the step whose line is missing', async () => {
    const { sink } = broken(({ type }) => type === 'tool_call')
    const { ran, tools } = numbered('look')
    const agent = agentGraph({ model: scripted([LOOK]), tools, middleware: [new AuditLogMiddleware({ sink })] })
    await expect(createRuntime().run(agent, user('look'))).rejects.toThrow(
      /"AuditLogMiddleware" failed at toolCall.*disk full/,
    )
    expect(ran).toEqual([])
  })

  it('is a warning where that is asked for, and the next line says how many are missing', async () => {
    const { records, sink } = broken(({ seq }) => seq === 2 || seq === 3)
    const { outcome } = await audited({ sink, onFailure: 'warn' })
    expect(outcome.status).toBe('completed')
    expect(outcome.warnings.map(({ message }) => message)).toEqual(
      Array(2).fill('middleware "AuditLogMiddleware": the audit log did not take a line: disk full'),
    )
    expect(records.map(({ seq, dropped }) => [seq, dropped])).toEqual([
      [1, undefined],
      [4, 2],
      ...[5, 6, 7, 8].map((seq) => [seq, undefined]),
    ])
  })
})

describe('the options', () => {
  it.each([
    { name: 'no sink', options: {}, says: 'sink has no write(line)' },
    {
      name: 'another option',
      options: { sink: { write: () => undefined }, records: [] },
      says: 'has no "records"',
    },
    {
      name: 'another failure rule',
      options: { sink: { write: () => undefined }, onFailure: 'ignore' },
      says: 'onFailure is "ignore"',
    },
  ])('are refused where they are none: $name', ({ options, says: why }) => {
    expect(() => new AuditLogMiddleware(options as never)).toThrow(why)
  })
})

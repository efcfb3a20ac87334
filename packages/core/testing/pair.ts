import {
  agentLoop,
  type Consultation,
  createRuntime,
  type Decision,
  END,
  Graph,
  graph,
  MemoryStore,
  type Middleware,
  middleware,
  node,
  type Policy,
  type PolicyOptions,
  type RunEvent,
  type Seam,
  type SluiceError,
  START,
  type StreamOptions,
  type Subject,
  scripted,
  type Warning,
} from '../src/index.ts'
import { eventsOf, noting, ofType, oneNode, type Shown, says, settle, Text, type TextGraph } from './play.ts'

/** What a step of each seam is given, or supplied with, by the one called `who`. */
const INPUTS: { readonly [S in Seam]?: (who: string) => unknown } = {
  run: (who) => ({ text: who }),
  node: (who) => ({ text: who, made: 'nothing' }),
  modelCall: (who) => ({ messages: [{ role: 'user', content: who }] }),
  toolCall: (who) => ({ text: who }),
}
const VALUES: { readonly [S in Seam]?: (who: string) => unknown } = {
  run: (who) => ({ text: 'given', made: who }),
  node: (who) => ({ made: who }),
  nodeError: (who) => ({ made: who }),
  modelCall: (who) => ({ content: who }),
  toolCall: (who) => who,
  ask: (who) => who,
}

/** Whether a consultation is about the step under test, and not about what stands around it. */
const ABOUT: { readonly [S in Seam]?: (subject: Subject, input: unknown, value: unknown) => boolean } = {
  run: ({ nested }) => nested === true,
  node: ({ nodeName }) => nodeName === 'step',
  nodeError: ({ nodeName }) => nodeName === 'step',
  agentRound: (_subject, input, value) => ((input ?? value) as { round: number }).round === 1,
}

function verdict(seam: Seam, action: string, who: string): unknown {
  if (action === 'throws') throw new Error(`${who} broke`)
  if (action === 'modify') return { action, input: INPUTS[seam]?.(who) }
  if (action === 'replace') return { action, value: VALUES[seam]?.(who) }
  if (action === 'suspend') return { action, ask: { who } }
  return { action, reason: `${who} says so` }
}

/** What two policies and a step came to, in the words of the golden table. */
export interface Played {
  readonly consulted: string
  readonly ran: string
  readonly comes: string
  readonly decisions: string
  readonly warnings: string
}

interface Pair {
  readonly seam: Seam
  readonly half: 'before' | 'after'
  readonly step?: string
  readonly first: string
  readonly second: string
  /** What the first policy answers when it is consulted once more. */
  readonly again?: string
  /** What the operator decided about the first policy. */
  readonly rules?: Pick<PolicyOptions, 'mode' | 'onFailure'>
}

/** How own middleware says what a policy answers: the hook that stands there, and its word. */
const OWN: { readonly [at: string]: { readonly hook: string; readonly words: Readonly<Record<string, string>> } } = {
  'node.before': { hook: 'beforeNode', words: { modify: 'replace', replace: 'answer', reject: 'reject' } },
  'node.after': { hook: 'afterNode', words: { replace: 'replace', fail: 'fail' } },
  'nodeError.after': { hook: 'onError', words: { replace: '', retry: 'retry', fail: 'fail' } },
  'agentRound.before': { hook: 'beforeRound', words: { reject: 'reject' } },
  'agentRound.after': { hook: 'afterRound', words: { fail: 'fail' } },
  'modelCall.before': { hook: 'beforeModel', words: { modify: 'replace', replace: 'answer', reject: 'reject' } },
  'modelCall.after': { hook: 'afterModel', words: { replace: 'replace', retry: 'retry', fail: 'fail' } },
  'modelCall.after fails': { hook: 'onModelError', words: { replace: '', retry: 'retry', fail: 'fail' } },
  'toolCall.before': { hook: 'beforeTool', words: { modify: 'replace', replace: 'answer', reject: 'reject' } },
  'toolCall.after': { hook: 'afterTool', words: { replace: 'replace', reject: 'reject', fail: 'fail' } },
}

export interface Single {
  readonly seam: Seam
  readonly half: 'before' | 'after'
  readonly fails: boolean
  readonly action: string
}

/** Every verdict that a policy and a hook may both give. */
export const SINGLES: readonly Single[] = Object.entries(OWN).flatMap(([at, { words }]) => {
  const [place = '', fails] = at.split(' ')
  const [seam, half] = place.split('.') as [Seam, 'before' | 'after']
  return Object.keys(words).map((action) => ({
    seam,
    half,
    fails: fails !== undefined || seam === 'nodeError',
    action,
  }))
})

/** Own middleware of the child graph that says this word at this half. */
function ownSaying(
  { seam, half, fails, action }: Single,
  name: string,
  told: (name: string) => void = () => undefined,
) {
  const { hook, words } = OWN[`${seam}.${half}${fails && seam === 'modelCall' ? ' fails' : ''}`] as (typeof OWN)[string]
  const value = action === 'modify' ? INPUTS[seam]?.(name) : action === 'replace' ? VALUES[seam]?.(name) : undefined
  return middleware({
    name,
    [hook]: (ctx: Readonly<Record<string, (given: unknown) => unknown>> & { readonly round?: number }) => {
      if (seam === 'agentRound' && ctx.round !== 1) return undefined
      told(name)
      const word = words[action] as string
      if (word === '') return value
      return ctx[word]?.(value ?? (action === 'retry' ? {} : `${name} says so`))
    },
  })
}

/** Lets own middleware judge one step, and a policy what that left. */
export async function playBeside(own: Single, answer: string): Promise<Played> {
  const { seam, half, fails } = own
  const consulted: string[] = []
  const judge = says('policy', {
    [`${seam}.${half}`]: ({ subject, input, outcome }: Shown, { revisit }: Consultation) => {
      if (ABOUT[seam]?.(subject, input, outcome?.ok ? outcome.value : undefined) === false)
        return { action: half === 'before' ? 'proceed' : 'pass' }
      consulted.push(revisit ? 'policy again' : 'policy')
      return verdict(seam, answer, 'policy')
    },
  })
  const playing = () => stage(seam, fails, [ownSaying(own, 'own', (name) => consulted.push(name))])
  const { parent, ran, caught } = playing()
  const { error, state, warnings } = await settle({ graph: parent, policies: [judge] })
  const told = consulted.splice(0).join(', ')
  const decisions = ofType(await eventsOf({ graph: playing().parent, policies: [judge] }), 'decision')
  return {
    consulted: told,
    ran: ran.join(', ') || '–',
    comes: comesTo(error, caught[0], state?.made),
    decisions: decisions.map(({ policy, middleware: by, action }) => `${policy ?? by} ${action}`).join(', '),
    warnings: warnings.map(inWords).join(', '),
  }
}

/** Lets one policy, or own middleware of the child graph, judge one step; both are called `first`. */
export async function playSingle({ seam, half, fails, action }: Single, as: 'policy' | 'own'): Promise<Played> {
  const about = (subject: Subject, input: unknown, value?: unknown) => ABOUT[seam]?.(subject, input, value) !== false
  const judge = says('first', {
    [`${seam}.${half}`]: ({ subject, input, outcome }: Shown) =>
      about(subject, input, outcome?.ok ? outcome.value : undefined)
        ? verdict(seam, action, 'first')
        : { action: half === 'before' ? 'proceed' : 'pass' },
  })
  const own = ownSaying({ seam, half, fails, action }, 'first')
  const playing = () => stage(seam, fails, as === 'own' ? [own] : [])
  const policies = as === 'own' ? [] : [judge]
  const { parent, ran, caught } = playing()
  const { error, state, warnings } = await settle({ graph: parent, policies })
  const decisions = ofType(await eventsOf({ graph: playing().parent, policies }), 'decision')
  return {
    consulted: 'first',
    ran: ran.join(', ') || '–',
    comes: comesTo(error, caught[0], state?.made),
    decisions: decisions.map(({ policy, middleware: by, action: said }) => `${policy ?? by} ${said}`).join(', '),
    warnings: warnings.map(inWords).join(', '),
  }
}

/** Lets two policies judge one step of a graph that runs inside another one, whose node catches what may be caught. */
export async function playPair({ seam, half, step, first, second, again = 'proceed', rules }: Pair): Promise<Played> {
  const consulted: string[] = []
  const judge = (who: string, action: string, options: Pair['rules'] = {}): Policy =>
    says(
      who,
      {
        [`${seam}.${half}`]: ({ subject, input, outcome }: Shown, { revisit }: Consultation) => {
          if (ABOUT[seam]?.(subject, input, outcome?.ok ? outcome.value : undefined) === false)
            return { action: half === 'before' ? 'proceed' : 'pass' }
          consulted.push(revisit ? `${who} again` : who)
          if (!revisit) return verdict(seam, action, who)
          return again === 'modify to the same' ? { action: 'modify', input } : verdict(seam, again, who)
        },
      },
      options,
    )
  const { parent, ran, caught } = stage(seam, step === 'fails')
  const playing = { graph: parent, policies: [judge('first', first, rules), judge('second', second)] }
  const { outcome, decisions, warnings } = await (seam === 'ask' ? playAnswered(playing, ran) : play(playing))
  const { error, state } = outcome
  return {
    consulted: consulted.join(', '),
    ran: ran.join(', ') || '–',
    comes: comesTo(error, caught[0], state?.made),
    decisions: decisions
      .map(({ policy, action, mode }: Decision) => `${policy} ${mode === undefined ? '' : 'would '}${action}`)
      .join(', '),
    warnings: warnings.map(inWords).join(', '),
  }
}

interface Playing {
  readonly graph: TextGraph
  readonly policies: readonly Policy[]
}

async function play({ graph, policies }: Playing, options?: StreamOptions, runtime = createRuntime({ policies })) {
  const events: RunEvent[] = []
  const stream = runtime.stream(graph, options?.resume === undefined ? {} : undefined, options)
  for await (const event of stream) events.push(event)
  const outcome = await stream.outcome
  return { outcome, decisions: ofType(events, 'decision'), warnings: outcome.warnings }
}

/** On a thread, with a person who answers what is asked: that is the step. */
async function playAnswered(playing: Playing, ran: string[]) {
  const runtime = createRuntime({ policies: playing.policies, store: new MemoryStore() })
  const asked = await play(playing, { thread: 't' }, runtime)
  if (asked.outcome.status !== 'paused') return asked
  ran.push('given')
  const answered = await play(playing, { thread: 't', resume: 'step' }, runtime)
  return {
    outcome: answered.outcome,
    decisions: [...asked.decisions, ...answered.decisions],
    warnings: [...asked.outcome.warnings, ...answered.warnings],
  }
}

class StepError extends Error {}

/** A graph with the step of a seam in a child graph. What `step` may catch of its calls, and `caller` of the child, is `caught`. */
function stage(seam: Seam, fails: boolean, own: readonly Middleware[] = []) {
  const ran: string[] = []
  const caught: unknown[] = []
  const work = (text: string) => {
    ran.push(text)
    if (fails) throw new StepError('the step fails')
    return 'step'
  }
  const act = noting(({ text }) => work(text))
  const model = scripted(Array.from({ length: 4 }, () => (request) => work(request.messages.at(-1)?.content ?? '')))
  const agent = scripted([
    () => {
      ran.push('given')
      return { tool_calls: [{ name: 'look', arguments: { text: 'x' } }] }
    },
    'step',
  ])
  const make: { readonly [S in Seam]?: (ctx: Parameters<typeof agentLoop>[0]) => Promise<unknown> } = {
    toolCall: (ctx) => ctx.callTool(act, { text: 'given' }),
    ask: (ctx) => ctx.ask('q', 'given'),
    modelCall: async (ctx) => (await ctx.callModel(model, { messages: [{ role: 'user', content: 'given' }] })).content,
    agentRound: async (ctx) =>
      (await agentLoop(ctx, { model: agent, tools: [noting(undefined, 'look')], messages: [] })).content,
  }
  const bare = oneNode(async ({ text }, ctx) => {
    const call = make[seam]
    if (call === undefined) return { made: work(text) }
    try {
      return { made: await call(ctx) }
    } catch (error) {
      caught.push(error)
      return {}
    }
  })
  const child: TextGraph = new Graph({ ...bare.plan, middleware: own })
  const caller = node('caller', Text, async (_state, ctx) => {
    try {
      return { made: (await ctx.run(child, { text: 'given' })).made }
    } catch (error) {
      caught.push(error)
      return {}
    }
  })
  return { parent: graph('parent', Text).edge(START, caller).edge(caller, END).check(), ran, caught }
}

function comesTo(stopped: unknown, caught: unknown, value: unknown): string {
  const error = stopped ?? caught
  if (error === undefined) return `value of ${value}`
  if (error instanceof StepError) return 'error of step'
  const { code, at } = error as SluiceError
  return `${stopped === undefined ? 'error' : 'stop'} ${code} by ${at.policy ?? at.middleware}`
}

const WORDS: readonly (readonly [RegExp, string])[] = [
  [/ supplied a result for /, 'supplied the result'],
  [/ retries .*, attempt \d of 3/, 'retries it'],
  [/ asked for a retry of .*, which is refused: attempt 3 of 3 was the last/, 'may not retry'],
  [/ refused .*: (first|second|own|policy) says so$/, 'refused it'],
  [/; it does not count\.$/, 'does not count'],
  [/ broke\. By its failure rule that counts as (?:proceed|pass)\.$/, 'failed, which passes'],
]

const inWords = ({ message, policy, middleware: own }: Warning): string =>
  `${policy ?? own} ${WORDS.find(([pattern]) => pattern.test(message))?.[1] ?? message}`

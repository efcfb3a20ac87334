import { Consultation, type Json, type JsonObject, type Policy } from '@sluice/core'

type Question = Consultation['question']
type Site = Question['site']

/** What a policy did beside answering, in order. */
export interface Told {
  readonly events: { readonly name: string; readonly data: Json }[]
  readonly logs: { readonly level: string; readonly message: string }[]
}

/** The part of a run that a consultation needs, played by plain values. */
export function fakeSite(parts: Partial<Site> = {}): Site & Told {
  const events: Told['events'] = []
  const logs: Told['logs'] = []
  const site: Site & Told = {
    stopped: false,
    signal: new AbortController().signal,
    timers: {
      now: () => performance.now(),
      set: (ms, then) => setTimeout(then, ms),
      clear: (timer) => clearTimeout(timer as NodeJS.Timeout),
    },
    labels: new Set(),
    kept: undefined as never,
    consultations: new Set(),
    stop() {},
    warn() {},
    note() {},
    decided() {},
    consulted() {},
    decisions: undefined,
    shadows: undefined as never,
    beside: () => site,
    emitFrom: (_policy, _subject, name, data) => events.push({ name, data }),
    logFrom: (_policy, _subject, level, message) => logs.push({ level, message }),
    callModelFrom: async () => ({ content: 'from the model', finish_reason: 'stop' }),
    runToolFrom: async (_consultation, name, input) => ({ ran: name, input }),
    ...parts,
    events,
    logs,
  }
  return site
}

export interface Asking extends Partial<Question> {
  readonly revisit?: boolean
}

/** A consultation of a policy about a call of the tool `shell`, or about what `asking` says. */
export function consultation(
  policy: Policy,
  { revisit = false, site = fakeSite(), ...asking }: Asking = {},
): Consultation {
  const question = {
    site,
    seam: 'toolCall',
    half: 'before',
    subject: { nodeName: 'agent', nodeType: 'AgentNode', toolName: 'shell', toolCallId: 'call-1' },
    input: { cmd: 'ls' } as JsonObject,
    outcome: undefined,
    attempt: 1,
    maxAttempts: 1,
    substituted: undefined,
    answered: undefined,
    nestedIn: [],
    ...asking,
  } satisfies Question
  return new Consultation(policy, question, revisit, policy.kept && (fakeKeeper() as never))
}

/** Keeps what it is given, for one consultation. */
const fakeKeeper = () => ({
  kept: {
    value: {} as unknown,
    update(change: (value: unknown) => unknown) {
      this.value = change(this.value)
    },
  },
  end() {},
})

/** Asks a policy as the gate does: its time is bounded, and it is given up when that is over. */
export async function ask(policy: Policy, asking: Asking = {}, halfMs = 15_000): Promise<unknown> {
  const asked = consultation(policy, asking)
  const answer = policy.consult(asked) as Promise<unknown>
  return asked.within(answer, asked.question.site.timers.now() + halfMs)
}

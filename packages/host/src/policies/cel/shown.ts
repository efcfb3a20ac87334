import { Environment, type ObjectSchema } from '@marcbachmann/cel-js'
import type { Half, Seam } from '@sluice/core'

/** What an expression is for: a selector is decided before a policy is consulted, a rule while it is. */
type Use = 'match' | 'rule'

/** A half, and what an expression about it is for. */
export interface Site {
  readonly seam: Seam
  readonly half: Half
  readonly use: Use
}

const NODE = { nodeName: 'string', nodeType: 'string' } as const

/** The fields of `subject`, seam by seam. */
export const SUBJECT: { readonly [S in Seam]: Readonly<Record<string, 'string' | 'bool'>> } = {
  run: { graphName: 'string', resuming: 'bool', nested: 'bool' },
  node: NODE,
  nodeError: NODE,
  agentRound: NODE,
  modelCall: NODE,
  toolCall: { ...NODE, toolName: 'string', toolCallId: 'string', caller: 'string', source: 'string' },
  ask: { ...NODE, key: 'string', askedBy: 'string' },
}

const MESSAGE = 'Message'
const REQUEST = {
  model: 'string',
  messages: `list<${MESSAGE}>`,
  tools: 'list<dyn>',
  temperature: 'dyn',
  maxTokens: 'dyn',
  topP: 'dyn',
  responseFormat: 'dyn',
}
const RESPONSE = { content: 'string', finish_reason: 'string', tool_calls: 'list<dyn>', usage: 'dyn' }

/** Inputs and values whose fields are known; all others may be anything. Numbers are `dyn`: CEL has several kinds, JSON one. */
const INPUT: { readonly [S in Seam]?: ObjectSchema } = {
  modelCall: REQUEST,
  agentRound: { round: 'dyn', maxRounds: 'dyn' },
}
const VALUE: { readonly [S in Seam]?: ObjectSchema } = {
  modelCall: RESPONSE,
  agentRound: { round: 'dyn', toolCalls: 'list<string>' },
}

/** The names that an expression may read at a half. */
export function namesAt({ seam, half, use }: Site): readonly string[] {
  return [
    'subject',
    'labels',
    ...(half === 'before' || seam === 'toolCall' ? ['input'] : []),
    ...(half === 'after' ? ['outcome'] : []),
    ...(use === 'rule' ? ['attempt', 'maxAttempts', 'substituted'] : []),
  ]
}

type Functions = (environment: Environment) => Environment

/** Nothing that people write is longer; it bounds what a check costs. */
const LIMITS = { maxAstNodes: 2_000, maxDepth: 64, maxListElements: 500, maxMapEntries: 500, maxCallArguments: 16 }

/**
 * Where an expression is checked: it knows what the half shows and the types of that. It evaluates nothing, for what is known of
 * a type makes reading it slow.
 */
export function checkingEnvironment(site: Site, functions: Functions): Environment {
  const { seam } = site
  const environment = functions(new Environment({ limits: LIMITS, homogeneousAggregateLiterals: false }))
  environment.registerType(MESSAGE, {
    schema: { id: 'string', role: 'string', content: 'string', tool_calls: 'list<dyn>', tool_call_id: 'string' },
  })
  const types: Readonly<Record<string, string | { schema: ObjectSchema }>> = {
    subject: { schema: SUBJECT[seam] },
    labels: 'list<string>',
    input: schemaOr(INPUT[seam]),
    outcome: {
      schema: { ok: 'bool', value: VALUE[seam] ?? 'dyn', error: { name: 'string', message: 'string', code: 'string' } },
    },
    attempt: 'dyn',
    maxAttempts: 'dyn',
    substituted: 'string',
  }
  for (const name of namesAt(site)) register(environment, name, types[name] ?? 'dyn')
  return environment
}

const schemaOr = (schema: ObjectSchema | undefined) => (schema === undefined ? 'dyn' : { schema })

function register(environment: Environment, name: string, type: string | { schema: ObjectSchema }): void {
  if (typeof type === 'string') environment.registerVariable(name, type)
  else environment.registerVariable({ name, schema: type.schema })
}

/** Where an expression about who answers is checked: it knows a principal, and nothing else. */
export function principalEnvironment(functions: Functions): Environment {
  return functions(new Environment({ limits: LIMITS, homogeneousAggregateLiterals: false })).registerVariable({
    name: 'principal',
    schema: { id: 'string', kind: 'string', scopes: 'list<string>', claims: 'dyn' },
  })
}

/** Where expressions are evaluated: every name, as plain values. */
export function evaluatingEnvironment(functions: Functions): Environment {
  return functions(new Environment({ limits: LIMITS, homogeneousAggregateLiterals: false }))
    .registerVariable('subject', 'map')
    .registerVariable('labels', 'list')
    .registerVariable('input', 'dyn')
    .registerVariable('outcome', 'map')
    .registerVariable('attempt', 'dyn')
    .registerVariable('maxAttempts', 'dyn')
    .registerVariable('substituted', 'string')
    .registerVariable('principal', 'map')
}

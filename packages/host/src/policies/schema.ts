import { admits, type Half, type JsonObject, SEAM_NAMES, type Seam } from '@sluice/core'
import { EVENTS } from '../adapters/command-hooks/events.ts'
import {
  ADAPTERS,
  DIGEST,
  FAILURE_RULES,
  HALVES,
  MODES,
  MOST_FAILURES,
  MOST_OPEN_MS,
  MOST_TIMEOUT_MS,
  NO_PATH,
  PATH,
  RULE_NAME,
  VARIABLE,
  VERDICT_FIELD_NAMES,
  VERDICT_FIELDS,
} from './read.ts'

const text = { type: 'string', pattern: '\\S' }
const texts = { type: 'array', items: text }
const paths = { type: 'array', items: { type: 'string', pattern: PATH, not: { pattern: NO_PATH } } }
const count = (maximum: number) => ({ type: 'integer', minimum: 1, maximum })
const described = (schema: object, description: string) => ({ ...schema, description })

const SHARED = {
  mode: described({ enum: MODES }, 'shadow: consulted beside the call, recorded and never obeyed.'),
  onFailure: described({ enum: FAILURE_RULES }, 'What its failure comes to: the end of the run, or proceed and pass.'),
  match: described(text, 'CEL over subject, labels and what the half shows: which calls it is consulted about.'),
}

/** For what runs programs. */
const PROGRAM = {
  env: described(
    { type: 'array', items: { type: 'string', pattern: VARIABLE } },
    'Names of the variables that its processes see.',
  ),
  ...SHARED,
  timeoutMs: described(count(MOST_TIMEOUT_MS), 'Milliseconds that it may take to answer.'),
  breaker: described(
    {
      type: 'object',
      required: ['failures', 'openMs'],
      additionalProperties: false,
      properties: { failures: count(MOST_FAILURES), openMs: count(MOST_OPEN_MS) },
    },
    'After so many failures in a row it is not consulted for so many milliseconds.',
  ),
  fields: described(paths, 'Only these parts of the input, or of the value, are shown to it.'),
  mayModify: described(paths, 'Only these parts may be changed by it.'),
}

const PLUGIN = {
  type: 'object',
  required: ['plugin'],
  additionalProperties: false,
  properties: {
    plugin: described(text, 'The manifest, from the folder of this file.'),
    config: described({ type: 'object', additionalProperties: { type: 'object' } }, 'Settings by component type.'),
    digest: described({ type: 'string', pattern: DIGEST }, 'The digest of its files; another one is refused.'),
    ...PROGRAM,
  },
}

const HOOK = {
  type: 'object',
  required: ['type', 'command'],
  additionalProperties: false,
  properties: {
    type: { const: 'command' },
    command: described(text, 'A line for /bin/sh; with args, the program itself.'),
    args: { type: 'array', items: { type: 'string' } },
    timeout: described({ type: 'number', exclusiveMinimum: 0 }, 'Seconds; 5 without it.'),
    onFailure: described({ const: 'block' }, 'Its failure is a "no".'),
  },
}

const hooksAbout = (matchedBy: string | undefined) => ({
  type: 'array',
  items: {
    type: 'object',
    required: ['hooks'],
    additionalProperties: false,
    properties: {
      matcher: matchedBy === undefined ? { enum: ['', '*'] } : { type: 'string' },
      hooks: { type: 'array', minItems: 1, items: HOOK },
    },
  },
})

const ADAPTER = {
  type: 'object',
  required: ['adapter'],
  additionalProperties: false,
  oneOf: [{ required: ['hooks'] }, { required: ['settings'] }],
  properties: {
    adapter: { enum: ADAPTERS },
    name: described({ type: 'string', pattern: RULE_NAME }, 'Its name; CommandHooks without it.'),
    hooks: described(
      {
        type: 'object',
        minProperties: 1,
        additionalProperties: false,
        properties: Object.fromEntries(
          Object.entries(EVENTS).map(([event, { matchedBy }]) => [event, hooksAbout(matchedBy)]),
        ),
      },
      'By event, as the settings of a coding agent have them.',
    ),
    settings: described(text, 'A settings file that has such hooks, from the folder of this file.'),
    ...PROGRAM,
  },
}

const RULE = {
  type: 'object',
  required: ['rule', 'seam', 'verdict'],
  additionalProperties: false,
  properties: {
    rule: described({ type: 'string', pattern: RULE_NAME }, 'Its name.'),
    seam: described({ enum: HALVES }, 'Where it is consulted.'),
    when: described(text, 'CEL: whether the verdict holds; always without it.'),
    verdict: { enum: Object.keys(VERDICT_FIELDS) },
    code: described({ type: 'string', pattern: '\\S', not: { pattern: '^sluice:' } }, 'For machines.'),
    labels: described(texts, 'Join the labels of the thread.'),
    ...SHARED,
    reason: described(text, 'For people and for the model; may hold ${…}.'),
    input: described({}, 'The new input; texts in it may hold ${…}.'),
    value: described({}, 'The result; texts in it may hold ${…}.'),
    ask: described({ anyOf: [text, { type: 'object' }] }, 'What a person is asked.'),
    delayMs: described(
      { anyOf: [{ type: 'number', minimum: 0 }, { type: 'string' }] },
      'Milliseconds before the retry.',
    ),
  },
  allOf: [...HALVES.map(verdictsOf), ...Object.keys(VERDICT_FIELDS).map(fieldsOf)],
}

/** What a half admits. */
function verdictsOf(name: string): object {
  const [seam, half] = name.split('.') as [Seam, Half]
  return {
    if: { properties: { seam: { const: name } }, required: ['seam'] },
    then: { properties: { verdict: { enum: admits(seam, half) } } },
  }
}

/** What belongs to a verdict, and what does not. */
function fieldsOf(verdict: string): object {
  const own = VERDICT_FIELDS[verdict] ?? {}
  return {
    if: { properties: { verdict: { const: verdict } }, required: ['verdict'] },
    then: {
      required: Object.keys(own).filter((name) => own[name] === 'required'),
      properties: Object.fromEntries(
        VERDICT_FIELD_NAMES.filter((name) => own[name] === undefined).map((name) => [name, false]),
      ),
    },
  }
}

/** The JSON Schema of a policy file, for editors: what {@link readPolicyFile} takes, but for what stands in expressions. */
export const policyFileSchema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'The policies of Sluice',
  type: 'object',
  additionalProperties: false,
  anyOf: [{ required: ['policies'] }, { required: ['require'] }],
  properties: {
    $schema: { type: 'string' },
    policies: described(
      {
        type: 'array',
        items: {
          if: { required: ['rule'] },
          then: RULE,
          else: { if: { required: ['adapter'] }, then: ADAPTER, else: PLUGIN },
        },
      },
      'In the order in which they are consulted.',
    ),
    require: described(
      {
        type: 'object',
        additionalProperties: false,
        properties: Object.fromEntries(SEAM_NAMES.map((seam) => [seam, texts])),
      },
      'By seam: policies that must be installed and enforce. A seam that is listed needs one that enforces.',
    ),
  },
} as unknown as JsonObject

import { type Consultation, isObject, type Json, type JsonObject, type Policy, policy } from '@sluice/core'
import { compileApprovers, ExpressionFault, type Values } from './cel/expression.ts'
import type { Site } from './cel/shown.ts'
import { compileTemplate, type Template } from './cel/template.ts'
import type { RuleEntry } from './entry.ts'
import type { PolicyFaults } from './faults.ts'
import { compileSelector, expressionAt, yesOrNo } from './selector.ts'

/** What a person may answer to a rule: yes or no, or that with a reason. */
const APPROVAL: JsonObject = {
  anyOf: [
    { type: 'boolean' },
    {
      type: 'object',
      properties: { approved: { type: 'boolean' }, reason: { type: 'string' } },
      required: ['approved'],
    },
  ],
}

/**
 * Makes a policy of a rule: in this process, synchronous, consulted like any other.
 *
 * @returns `undefined` where something is wrong with it, which stands in the faults.
 */
export function compileRule(entry: RuleEntry, faults: PolicyFaults): Policy | undefined {
  const { path, rule: name, seam, half, terms, origin } = entry
  const site: Site = { seam, half, use: 'rule' }
  const { match, ...rules } = terms
  const of = (field: string) => `"${field}" of rule "${name}" (${origin})`
  const selector = match && compileSelector(match, [site], of('match'), [...path, 'match'], faults)
  const when = entry.when && expressionAt(entry.when, [site], of('when'), [...path, 'when'], faults)
  const answer = compileVerdict(entry, site, faults)
  if (answer === undefined) return undefined
  const nothing = { action: half === 'before' ? 'proceed' : 'pass' }
  const handler = ({ subject, input, outcome }: Consultation['shown'], ctx: Consultation) => {
    const { attempt, maxAttempts, substituted = '' } = ctx.question
    const values = { subject, labels: labelsOf(ctx), input, outcome, attempt, maxAttempts, substituted }
    if (when && !yesOrNo(when.evaluate(values), of('when'))) return nothing
    return answer(values, ctx.answered)
  }
  return policy({
    name,
    plugin: faults.file,
    origin,
    ...rules,
    ...(selector && { match: selector }),
    // The table of seams says what the handler may answer; the file was checked against it.
    seams: { [seam]: { [half]: handler } } as never,
  })
}

const NO_LABELS: readonly string[] = []

/** Most turns have none, and a list is made only for those that have. */
const labelsOf = (ctx: Consultation): readonly string[] =>
  ctx.question.site.labels.size === 0 ? NO_LABELS : ctx.labels

type Answer = (values: Values, answered: Json | undefined) => object

function compileVerdict(entry: RuleEntry, site: Site, faults: PolicyFaults): Answer | undefined {
  const { verdict: action, code, labels } = entry
  const remarks = { ...(code !== undefined && { code }), ...(labels !== undefined && { labels }) }
  const templates = compileTemplates(entry, site, faults)
  if (action === 'suspend') return suspending(templates, remarks)
  const members = Object.entries(templates)
  if (members.length === 0) return () => ({ action, ...remarks })
  return (values) => ({
    action,
    ...remarks,
    ...Object.fromEntries(members.map(([field, make]) => [field, make(values)])),
  })
}

const TEMPLATES = ['reason', 'input', 'value', 'ask', 'delayMs'] as const

type Templates = { readonly [F in (typeof TEMPLATES)[number]]?: Template }

function compileTemplates(entry: RuleEntry, site: Site, faults: PolicyFaults): Templates {
  const { reason, input, value, delayMs } = entry
  const written = { reason, input, value, delayMs, ask: askOf(entry, faults) }
  const compiled = TEMPLATES.flatMap((field) => {
    const value = written[field]
    if (value === undefined) return []
    const what = `"${field}" of rule "${entry.rule}" (${entry.origin})`
    const template = compileTemplate(value, site, what, (way, { message, index }) => {
      const path = [...entry.path, field, ...(field === 'ask' && typeof entry.ask === 'string' ? [] : way)]
      faults.add('POLICY_FILE_CEL', path, `${message}.`, { index })
    })
    return [[field, field === 'reason' ? asText(template) : template] as const]
  })
  return Object.fromEntries(compiled)
}

const asText =
  (template: Template): Template =>
  (values) => {
    const value = template(values)
    return typeof value === 'string' ? value : JSON.stringify(value)
  }

/** What a person is shown, with the schema of what this rule understands. */
function askOf({ ask, path }: RuleEntry, faults: PolicyFaults): Json | undefined {
  if (ask === undefined) return undefined
  if (typeof ask === 'string') return { question: ask, schema: APPROVAL }
  checkApprovers(ask.approvers, [...path, 'ask', 'approvers'], faults)
  if (ask.onAnswer === 'result') return ask
  if (ask.schema === undefined) return { ...ask, schema: APPROVAL }
  const message =
    'a rule understands true, false and { approved, reason }; leave "schema" out, or make the answer the result with onAnswer: result.'
  faults.add('POLICY_FILE_VALUE', [...path, 'ask', 'schema'], message, { onKey: true })
  return undefined
}

/** An expression that data could be put into would be one that data could change, so it is no template. */
function checkApprovers(text: Json | undefined, path: RuleEntry['path'], faults: PolicyFaults): void {
  if (text === undefined) return
  try {
    if (typeof text === 'string' && !text.includes('${')) compileApprovers(text)
    else faults.add('POLICY_FILE_VALUE', path, 'it is an expression over "principal", and no template.')
  } catch (fault) {
    if (!(fault instanceof ExpressionFault)) throw fault
    faults.add('POLICY_FILE_CEL', path, `${fault.message}.`, { index: fault.index })
  }
}

function suspending({ ask, reason }: Templates, remarks: object): Answer | undefined {
  if (ask === undefined) return undefined
  return (values, answered) => {
    if (answered === undefined) return { action: 'suspend', ask: ask(values), ...remarks }
    const { approved, reason: theirs } = isObject(answered) ? answered : { approved: answered, reason: undefined }
    if (approved === true) return { action: 'proceed', ...remarks }
    const said = typeof theirs === 'string' && theirs.trim() !== '' ? theirs : undefined
    return { action: 'reject', reason: said ?? reason?.(values) ?? 'a person said no', ...remarks }
  }
}

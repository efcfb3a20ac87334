import type { Half, Json, Seam, ShownOutcome } from '@sluice/core'
import type { Posed } from '@sluice/core/testing'
import type { Path, PolicyFaults } from '../faults.ts'
import type { Fields } from '../fields.ts'
import { HALVES, objectAt } from '../read.ts'
import { readPolicyText } from '../text.ts'

/** One case: what policies are to be consulted about, and what is to come of it. */
export interface PolicyCase {
  readonly name: string
  /** `cases.yaml:8`. */
  readonly origin: string
  readonly given: Posed
  readonly expect: Expectation
}

/** What is not expected is not compared. */
export interface Expectation {
  readonly verdict: string
  /** The policy that decides. */
  readonly by?: string
  readonly code?: string
  /** Stands in the reason. */
  readonly reason?: string
  /** What would run. */
  readonly input?: Json
  /** What would be used. */
  readonly value?: Json
  /** The question to a person. */
  readonly ask?: Json
}

const GIVEN = ['seam', 'subject', 'input', 'outcome', 'attempt', 'maxAttempts', 'labels']
const EXPECT = ['verdict', 'by', 'code', 'reason', 'input', 'value', 'ask']
const VERDICTS = ['proceed', 'modify', 'replace', 'reject', 'suspend', 'pass', 'retry', 'fail'] as const
const SUBJECT = [
  ...['nodeName', 'nodeType', 'graphName', 'resuming', 'nested', 'toolName', 'toolCallId', 'caller', 'source'],
  ...['key', 'askedBy'],
]
const MOST_ATTEMPTS = 1_000

/**
 * Reads a file of cases.
 *
 * @throws PolicyFileError with every fault of it.
 */
export async function readCases(text: string, file: string): Promise<readonly PolicyCase[]> {
  const { value, faults } = await readPolicyText(text, file)
  const top = objectAt(value, [], faults, 'the file')
  top?.known(['cases'], 'a file of cases')
  if (top?.has('cases') === false) top.missing('cases', 'a list of cases, each with "given" and "expect"')
  const cases = top?.list('cases') ?? []
  const read = cases.map((each, i) => readCase(each, ['cases', i], faults))
  faults.finish()
  return read.filter((each) => each !== undefined)
}

function readCase(value: Json, path: Path, faults: PolicyFaults): PolicyCase | undefined {
  const fields = objectAt(value, path, faults, 'a case')
  if (fields === undefined) return undefined
  fields.known(['name', 'given', 'expect'], 'a case')
  for (const name of ['given', 'expect']) if (!fields.has(name)) fields.missing(name, 'an object')
  const [given, expected] = [fields.fields('given'), fields.fields('expect')]
  if (given === undefined || expected === undefined) return undefined
  const origin = faults.originOf(path)
  return { name: fields.text('name') ?? origin, origin, given: readGiven(given), expect: readExpect(expected) }
}

function readGiven(fields: Fields): Posed {
  fields.known(GIVEN, '"given"')
  if (!fields.has('seam')) fields.missing('seam', 'a half such as toolCall.before')
  const at = fields.oneOf('seam', HALVES) ?? 'toolCall.before'
  const [seam, half] = at.split('.') as [Seam, Half]
  fields.fields('subject')?.known(SUBJECT, 'a subject')
  const optional = {
    subject: fields.object('subject'),
    input: fields.json('input'),
    outcome: half === 'after' ? readOutcome(fields) : undefined,
    attempt: fields.count('attempt', MOST_ATTEMPTS),
    maxAttempts: fields.count('maxAttempts', MOST_ATTEMPTS),
    labels: fields.texts('labels'),
  }
  if (half === 'before' && fields.has('outcome')) fields.wrong('outcome', 'absent before a step')
  return { seam, half, ...withoutAbsent(optional) } as Posed
}

/** `{ value }`, or `{ error: { name?, message, code? } }`. */
function readOutcome(fields: Fields): ShownOutcome | undefined {
  if (!fields.has('outcome')) return undefined
  const outcome = fields.fields('outcome')
  if (outcome === undefined) return undefined
  outcome.known(['value', 'error'], '"outcome"')
  if (!outcome.has('error')) return { ok: true, value: outcome.json('value') ?? null }
  const error = outcome.fields('error')
  error?.known(['name', 'message', 'code'], '"error"')
  const message = error?.required('message', 'the text of the error') ?? ''
  const code = error?.text('code')
  return {
    ok: false,
    error: { name: error?.text('name') ?? 'Error', message, ...(code === undefined ? {} : { code }) },
  }
}

function readExpect(fields: Fields): Expectation {
  fields.known(EXPECT, '"expect"')
  if (!fields.has('verdict')) fields.missing('verdict', `one of: ${VERDICTS.join(', ')}`)
  const texts = { by: fields.text('by'), code: fields.text('code'), reason: fields.text('reason') }
  const values = { input: fields.json('input'), value: fields.json('value'), ask: fields.json('ask') }
  return { verdict: fields.oneOf('verdict', VERDICTS) ?? '', ...withoutAbsent({ ...texts, ...values }) }
}

const withoutAbsent = (object: object) =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))

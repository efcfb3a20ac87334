import { admits, type Half, isObject, type JsonObject, SEAM_NAMES, type Seam } from '@sluice/core'
import { readHooks } from '../adapters/command-hooks/settings.ts'
import type { AdapterEntry, Entry, PluginEntry, PolicyFile, Requirements, RuleEntry, Terms } from './entry.ts'
import type { Path, PolicyFaults } from './faults.ts'
import { Fields } from './fields.ts'

/** The name of a rule or an adapter, which stands in logs, questions and reasons. */
export const RULE_NAME = '^[A-Za-z][A-Za-z0-9_-]{0,63}$'
export const DIGEST = '^sha256:[0-9a-f]{64}$'
export const PATH = '^[^.]+(\\.[^.]+)*$'
/** What no path has. */
export const NO_PATH = '(^|\\.)__proto__(\\.|$)'
export const VARIABLE = '^[A-Za-z_][A-Za-z0-9_]*$'
/** Milliseconds: no policy is waited for any longer than the half that it is asked in takes. */
export const MOST_TIMEOUT_MS = 15_000
export const MOST_FAILURES = 1_000
export const MOST_OPEN_MS = 3_600_000

export const MODES = ['enforce', 'shadow', 'off'] as const
export const FAILURE_RULES = ['fail', 'pass'] as const
export const ADAPTERS = ['command-hooks'] as const

const TOP = ['policies', 'require', '$schema']
const SHARED = ['mode', 'onFailure', 'match']
const PROGRAM = ['env', ...SHARED, 'timeoutMs', 'breaker', 'fields', 'mayModify']
const PLUGIN = ['plugin', 'config', 'digest', ...PROGRAM]
const ADAPTER = ['adapter', 'name', 'hooks', 'settings', ...PROGRAM]
const RULE = ['rule', 'seam', 'when', 'verdict', 'code', 'labels', ...SHARED]

/** What belongs to one verdict of a rule, and whether it must be there. */
export const VERDICT_FIELDS: { readonly [verdict: string]: Readonly<Record<string, 'required' | 'optional'>> } = {
  reject: { reason: 'required' },
  fail: { reason: 'required' },
  modify: { input: 'required' },
  replace: { value: 'required' },
  suspend: { ask: 'required', reason: 'optional' },
  retry: { delayMs: 'optional' },
  proceed: {},
  pass: {},
}
export const VERDICT_FIELD_NAMES = [...new Set(Object.values(VERDICT_FIELDS).flatMap((of) => Object.keys(of)))]

/** `toolCall.before` and the like: every half there is. */
export const HALVES: readonly string[] = SEAM_NAMES.flatMap((seam) =>
  (['before', 'after'] as const).filter((half) => admits(seam, half).length > 0).map((half) => `${seam}.${half}`),
)

/** Reads what a policy file says; what is wrong goes to `faults`, and then the result is of no use. */
export function readPolicyFile(value: unknown, faults: PolicyFaults): PolicyFile {
  const top = objectAt(value, [], faults, 'the file')
  top?.known(TOP, 'a policy file')
  if (top !== undefined && !top.has('policies') && !top.has('require'))
    top.missing('policies', 'a list of entries, each with "plugin", "rule" or "adapter"')
  const entries = (top?.list('policies') ?? []).map((item, i) => readEntry(item, ['policies', i], faults))
  const found = entries.filter((entry) => entry !== undefined)
  refuseTwice(found, faults)
  return { file: faults.file, entries: found, require: readRequire(top?.fields('require')) }
}

export function objectAt(value: unknown, path: Path, faults: PolicyFaults, what: string): Fields | undefined {
  // What was read from the file is JSON.
  if (isObject(value)) return new Fields(value as JsonObject, path, faults)
  faults.add('POLICY_FILE_VALUE', path, `${what} must be an object.`)
  return undefined
}

function readEntry(value: unknown, path: Path, faults: PolicyFaults): Entry | undefined {
  const fields = objectAt(value, path, faults, 'an entry of "policies"')
  if (fields === undefined) return undefined
  const placed = { path, origin: faults.originOf(path), terms: readTerms(fields) }
  const kinds = KINDS.filter((kind) => fields.has(kind))
  if (kinds.length === 1) return READERS[kinds[0] as Entry['kind']](fields, placed, faults)
  const message =
    kinds.length > 1
      ? 'an entry has one of "plugin", "rule" and "adapter", not several.'
      : 'an entry needs "plugin", the path of a manifest, "rule", a name, or "adapter", "command-hooks".'
  faults.add('POLICY_FILE_FIELD', path, message)
  return undefined
}

const READERS = { plugin: readPlugin, rule: readRule, adapter: readAdapter }
const KINDS = ['plugin', 'rule', 'adapter'] as const

function readTerms(fields: Fields): Terms {
  const breaker = fields.fields('breaker')
  breaker?.known(['failures', 'openMs'], '"breaker"')
  for (const name of ['failures', 'openMs'])
    if (breaker?.has(name) === false) breaker.missing(name, 'it has no default')
  const failures = breaker?.count('failures', MOST_FAILURES)
  const openMs = breaker?.count('openMs', MOST_OPEN_MS)
  const terms: Terms = {
    mode: fields.oneOf('mode', MODES),
    onFailure: fields.oneOf('onFailure', FAILURE_RULES),
    match: fields.text('match'),
    timeoutMs: fields.count('timeoutMs', MOST_TIMEOUT_MS),
    fields: readPaths(fields, 'fields'),
    mayModify: readPaths(fields, 'mayModify'),
    ...(failures !== undefined && openMs !== undefined && { breaker: { failures, openMs } }),
  }
  return Object.fromEntries(Object.entries(terms).filter(([, term]) => term !== undefined))
}

function readPaths(fields: Fields, name: string): readonly string[] | undefined {
  const paths = fields.texts(name)
  if (!paths?.some((path) => !new RegExp(PATH).test(path) || new RegExp(NO_PATH).test(path))) return paths
  fields.wrong(name, 'a list of paths such as "cmd", "args.*.url" or "messages.0.content"')
  return undefined
}

type Placed = Pick<Entry, 'path' | 'origin' | 'terms'>

function readPlugin(fields: Fields, placed: Placed): PluginEntry | undefined {
  fields.known(PLUGIN, 'a plugin')
  const config = fields.fields('config')
  const settings = (config?.entries() ?? []).flatMap(([type]) => {
    const object = config?.object(type)
    return object === undefined ? [] : [[type, object] as const]
  })
  const env = readEnv(fields)
  const digest = fields.text('digest')
  if (digest !== undefined && !new RegExp(DIGEST).test(digest))
    fields.wrong('digest', '"sha256:" and 64 hexadecimal digits in lower case')
  const plugin = fields.text('plugin')
  if (plugin === undefined) return undefined
  return { kind: 'plugin', ...placed, plugin, config: Object.fromEntries(settings), env, digest }
}

function readEnv(fields: Fields): readonly string[] {
  const env = fields.texts('env') ?? []
  if (env.every((name) => new RegExp(VARIABLE).test(name))) return env
  fields.wrong('env', 'a list of names of variables, without values: secrets stay in the environment')
  return []
}

function readAdapter(fields: Fields, placed: Placed, faults: PolicyFaults): AdapterEntry | undefined {
  fields.known(ADAPTER, 'an adapter')
  const adapter = fields.oneOf('adapter', ADAPTERS)
  const name = readName(fields, 'name') ?? 'CommandHooks'
  const env = readEnv(fields)
  const written = fields.object('hooks')
  const hooks = written && checkHooks(written, [...placed.path, 'hooks'], faults) ? written : undefined
  const settings = fields.text('settings')
  if (fields.has('hooks') === fields.has('settings')) {
    const message = 'an adapter needs either "hooks" or "settings", the path of a file that has them.'
    faults.add('POLICY_FILE_FIELD', placed.path, message)
  }
  return adapter && { kind: 'adapter', ...placed, adapter, name, env, hooks, settings }
}

/** Adds what is wrong with hooks that stand at `path`. @returns whether nothing is. */
export function checkHooks(hooks: unknown, path: Path, faults: PolicyFaults): boolean {
  let isRight = true
  readHooks(hooks, ({ code, message }, keys) => {
    isRight = false
    faults.add(code, [...path, ...keys], message, { onKey: true })
  })
  return isRight
}

function readName(fields: Fields, field: string): string | undefined {
  const name = fields.text(field)
  if (name !== undefined && !new RegExp(RULE_NAME).test(name))
    fields.wrong(field, 'a name of letters, digits, "_" and "-" that begins with a letter, at most 64')
  return name
}

function readRule(fields: Fields, placed: Placed, faults: PolicyFaults): RuleEntry | undefined {
  const rule = readName(fields, 'rule') ?? ''
  fields.known([...RULE, ...VERDICT_FIELD_NAMES], 'a rule')
  const [seam, half] = readHalf(fields)
  // Without it, nobody knows what the rule may say, nor what its expressions may read.
  if (seam === undefined || half === undefined) return undefined
  const verdict = readVerdict(fields, seam, half)
  checkVerdictFields(fields, verdict, faults)
  const ask = fields.json('ask')
  if (ask !== undefined && !isObject(ask) && fields.text('ask') === undefined)
    fields.wrong('ask', 'a text or an object')
  const delayMs = fields.json('delayMs')
  if (delayMs !== undefined && typeof delayMs !== 'string' && !(typeof delayMs === 'number' && delayMs >= 0))
    fields.wrong('delayMs', 'milliseconds, 0 or more, or a text with an expression that gives them')
  return {
    kind: 'rule',
    ...placed,
    rule,
    seam,
    half,
    verdict,
    when: fields.text('when'),
    reason: fields.text('reason'),
    input: fields.json('input'),
    value: fields.json('value'),
    ask: ask as RuleEntry['ask'],
    delayMs: delayMs as RuleEntry['delayMs'],
    code: readCode(fields),
    labels: fields.texts('labels'),
  }
}

function readHalf(fields: Fields): readonly [Seam?, Half?] {
  if (!fields.has('seam')) fields.missing('seam', `where it is consulted, one of: ${HALVES.join(', ')}`)
  const [seam, half] = fields.oneOf('seam', HALVES)?.split('.') ?? []
  return [seam as Seam | undefined, half as Half | undefined]
}

function readVerdict(fields: Fields, seam: Seam, half: Half): string {
  const admitted = admits(seam, half)
  if (!fields.has('verdict')) fields.missing('verdict', `${seam}.${half} admits: ${admitted.join(', ')}`)
  return fields.oneOf('verdict', admitted) ?? ''
}

function checkVerdictFields(fields: Fields, verdict: string, faults: PolicyFaults): void {
  const own = VERDICT_FIELDS[verdict]
  if (own === undefined) return
  for (const [name, need] of Object.entries(own)) {
    if (need === 'required' && !fields.has(name)) fields.missing(name, `the verdict "${verdict}" needs it`)
  }
  for (const name of VERDICT_FIELD_NAMES) {
    if (!fields.has(name) || own[name] !== undefined) continue
    const message = `"${name}" does not belong to the verdict "${verdict}".`
    faults.add('POLICY_FILE_FIELD', [...fields.path, name], message, { onKey: true })
  }
}

function readCode(fields: Fields): string | undefined {
  const code = fields.text('code')
  if (code?.startsWith('sluice:')) fields.wrong('code', 'a text that does not begin with "sluice:"')
  return code
}

function readRequire(fields: Fields | undefined): Requirements {
  fields?.known(SEAM_NAMES, '"require"')
  const required = SEAM_NAMES.map((seam) => [seam, fields?.texts(seam)] as const)
  return Object.fromEntries(required.filter(([, names]) => names !== undefined))
}

function refuseTwice(entries: readonly Entry[], faults: PolicyFaults): void {
  const seen = new Map<string, string>()
  for (const entry of entries) {
    const name = ownName(entry)
    if (name === undefined) continue
    const before = seen.get(name)
    if (before === undefined) seen.set(name, entry.origin)
    else {
      const message = `there is a policy "${name}" at ${before} already; give each a name of its own.`
      faults.add('POLICY_FILE_VALUE', nameAt(entry), message)
    }
  }
}

/** The name of a policy that stands in the file itself. */
export function ownName(entry: Entry): string | undefined {
  if (entry.kind === 'plugin') return undefined
  return (entry.kind === 'rule' ? entry.rule : entry.name) || undefined
}

/** Where that name stands. */
export const nameAt = ({ kind, path }: Entry): Path => [...path, kind === 'rule' ? 'rule' : 'name']

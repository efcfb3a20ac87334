import { type JsonObject, validate } from '@sluice/core'
import { jsonSchema } from '@sluice/flow'
import { describe, expect, it } from 'vitest'
import { PolicyFaults } from './faults.ts'
import { readPolicyFile } from './read.ts'
import { policyFileSchema } from './schema.ts'

const judge = await jsonSchema(policyFileSchema, 'the schema of policy files')

function schemaTakes(file: unknown): boolean {
  try {
    validate(judge, file, 'the file')
    return true
  } catch {
    return false
  }
}

function loaderTakes(file: unknown): boolean {
  const faults = new PolicyFaults(JSON.stringify(file), 'sluice.yaml')
  readPolicyFile(file, faults)
  return faults.isClean
}

const plugin = (fields: JsonObject = {}) => ({ policies: [{ plugin: 'a.json', ...fields }] })
const rule = (fields: JsonObject = {}) => ({
  policies: [{ rule: 'r', seam: 'toolCall.before', verdict: 'reject', reason: 'no', ...fields }],
})
const hooks = (fields: JsonObject = {}) => ({
  policies: [{ adapter: 'command-hooks', hooks: { PreToolUse: [] }, ...fields }],
})
const hook = (fields: JsonObject = {}, event = 'PreToolUse', group: JsonObject = {}) =>
  hooks({ hooks: { [event]: [{ hooks: [{ type: 'command', command: './a.sh', ...fields }], ...group }] } })
const verdict = (seam: string, fields: JsonObject) => ({ policies: [{ rule: 'r', seam, ...fields }] })

const GOOD = {
  'no entries': { policies: [] },
  'requirements only': { require: { toolCall: ['r'], modelCall: [] } },
  'a plugin': plugin(),
  'a plugin with everything': plugin({
    config: { Gate: { max: 1 } },
    env: ['API_KEY'],
    digest: `sha256:${'0a'.repeat(32)}`,
    mode: 'shadow',
    onFailure: 'pass',
    match: 'true',
    timeoutMs: 250,
    breaker: { failures: 5, openMs: 30_000 },
    fields: ['cmd', 'args.*.url'],
    mayModify: ['messages.0.content'],
  }),
  'a rule': rule(),
  'a rule with everything': rule({
    when: 'true',
    match: 'true',
    code: 'c',
    labels: ['l'],
    mode: 'off',
    onFailure: 'fail',
  }),
  hooks: hook(),
  'hooks with everything': hook({ args: [''], timeout: 0.5, onFailure: 'block' }, 'PostToolUse', { matcher: 'a|b' }),
  'hooks of an event without names': hook({}, 'SessionEnd', { matcher: '*' }),
  'hooks in a settings file': {
    policies: [
      {
        adapter: 'command-hooks',
        settings: '.claude/settings.json',
        name: 'Guard',
        env: ['PATH'],
        mode: 'shadow',
        onFailure: 'pass',
        match: 'true',
        timeoutMs: 250,
        breaker: { failures: 5, openMs: 30_000 },
        fields: ['cmd'],
        mayModify: ['cmd'],
      },
    ],
  },
  'a modify': verdict('modelCall.before', { verdict: 'modify', input: { model: 'small' } }),
  'a replace by null': verdict('toolCall.before', { verdict: 'replace', value: null }),
  'an ask as text': verdict('toolCall.before', { verdict: 'suspend', ask: 'May it?' }),
  'an ask as object': verdict('node.before', { verdict: 'suspend', ask: { question: 'May it?' }, reason: 'no' }),
  'a retry': verdict('nodeError.after', { verdict: 'retry', delayMs: 0 }),
  'a retry by expression': verdict('modelCall.after', { verdict: 'retry', delayMs: '${100 * attempt}' }),
  'a label alone': verdict('toolCall.after', { verdict: 'pass', labels: ['untrusted'] }),
}

const BAD = {
  'no object': [],
  'nothing in it': {},
  'an unknown field': { policies: [], extra: 1 },
  'entries that are no list': { policies: {} },
  'an entry that is neither': { policies: [{}] },
  'an entry that is both': { policies: [{ plugin: 'a.json', rule: 'r', seam: 'toolCall.before', verdict: 'proceed' }] },
  'an entry that is no object': { policies: ['a.json'] },
  'a plugin without a path': plugin({ plugin: '' }),
  'a plugin with a field of rules': plugin({ when: 'true' }),
  'a rule with a field of plugins': rule({ timeoutMs: 1 }),
  'an adapter that there is not': hooks({ adapter: 'hooks' }),
  'an adapter that is a rule too': hooks({ rule: 'r', seam: 'toolCall.before', verdict: 'proceed' }),
  'an adapter that is a plugin too': hooks({ plugin: 'a.json' }),
  'an adapter without hooks': { policies: [{ adapter: 'command-hooks' }] },
  'hooks here and in a settings file': hooks({ settings: 'settings.json' }),
  'an adapter with a field of plugins': hooks({ config: {} }),
  'an adapter whose name is none': hooks({ name: 'two words' }),
  'hooks of no event': hooks({ hooks: {} }),
  'hooks of an event that is not served': hook({}, 'Stop'),
  'hooks that are no list': hooks({ hooks: { PreToolUse: {} } }),
  'a group without hooks': hooks({ hooks: { PreToolUse: [{ hooks: [] }] } }),
  'a group with an unknown field': hook({}, 'PreToolUse', { if: 'x' }),
  'a matcher where there is no name': hook({}, 'SessionEnd', { matcher: 'x' }),
  'a hook of another kind': hook({ type: 'prompt' }),
  'a hook without a command': hook({ command: ' ' }),
  'a hook with an unknown field': hook({ once: true }),
  'a hook with arguments that are no texts': hook({ args: [1] }),
  'a hook without time': hook({ timeout: 0 }),
  'a hook whose failure is let pass': hook({ onFailure: 'pass' }),
  'an unknown mode': plugin({ mode: 'watch' }),
  'an unknown failure rule': plugin({ onFailure: 'open' }),
  'settings that are no object': plugin({ config: { Gate: 1 } }),
  'a variable with a value': plugin({ env: ['KEY=secret'] }),
  'a digest that is none': plugin({ digest: 'sha256:abc' }),
  'no time at all': plugin({ timeoutMs: 0 }),
  'more time than a half has': plugin({ timeoutMs: 15_001 }),
  'half a breaker': plugin({ breaker: { failures: 1 } }),
  'a breaker that opens for no time': plugin({ breaker: { failures: 1, openMs: 0 } }),
  'a path that is none': plugin({ fields: ['a..b'] }),
  'a path into what objects inherit': plugin({ mayModify: ['__proto__'] }),
  'a name that is none': rule({ rule: 'two words' }),
  'no seam': { policies: [{ rule: 'r', verdict: 'reject', reason: 'no' }] },
  'a seam without its half': rule({ seam: 'toolCall' }),
  'a half that there is not': rule({ seam: 'nodeError.before' }),
  'no verdict': { policies: [{ rule: 'r', seam: 'toolCall.before' }] },
  'a verdict that the half does not admit': rule({ seam: 'agentRound.after' }),
  'a reject without a reason': verdict('toolCall.before', { verdict: 'reject' }),
  'a modify without an input': verdict('toolCall.before', { verdict: 'modify' }),
  'a proceed with a reason': verdict('toolCall.before', { verdict: 'proceed', reason: 'why' }),
  'a code of the engine': rule({ code: 'sluice:mine' }),
  'labels that are no list': rule({ labels: 'x' }),
  'an unknown seam that is required': { require: { tool: [] } },
  'a required name that is no text': { require: { toolCall: [1] } },
}

describe('the schema that editors use and the loader', () => {
  it.each(Object.entries(GOOD))('take %s', (_, file) => {
    expect({ schema: schemaTakes(file), loader: loaderTakes(file) }).toEqual({ schema: true, loader: true })
  })
  it.each(Object.entries(BAD))('refuse %s', (_, file) => {
    expect({ schema: schemaTakes(file), loader: loaderTakes(file) }).toEqual({ schema: false, loader: false })
  })
  it('stand in docs as they are; npx vitest run schema.test.ts -u writes the page', async () => {
    const page = `${JSON.stringify(policyFileSchema, null, 2)}\n`
    await expect(page).toMatchFileSnapshot('../../../../docs/sluice.schema.json')
  })
})

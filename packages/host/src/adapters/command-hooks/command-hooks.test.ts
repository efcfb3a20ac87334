import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  createAgent,
  type Json,
  type JsonObject,
  type Policy,
  type ScriptedReply,
  scripted,
  type Tool,
  tool,
} from '@sluice/core'
import { type Play, play } from '@sluice/core/testing'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { folderOf } from '../../testing/folder.ts'
import { ask } from '../../testing/site.ts'
import { commandHooks } from './command-hooks.ts'
import { EVENTS, REFUSED_EVENTS } from './events.ts'

const corpus =
  process.env.SLUICE_HOOKS_CORPUS ?? fileURLToPath(new URL('../../../../../../shared/agent-hooks', import.meta.url))
const isThere = existsSync(`${corpus}/command-hooks`)
if (!isThere)
  console.warn('The inputs of command hooks are not there; set SLUICE_HOOKS_CORPUS to the folder that has them.')
const inputs = (name: string): readonly (JsonObject & { readonly hook_event_name: string })[] =>
  isThere ? JSON.parse(readFileSync(`${corpus}/command-hooks/${name}`, 'utf8')) : []

const shell = (text: string) => `#!/bin/sh\n${text}\n`
/** Prints an answer, without reading what it was told. */
const says = (answer: unknown) => shell(`cat <<'ANSWER'\n${JSON.stringify(answer)}\nANSWER`)
const decides = (permissionDecision: string, more: object = {}) =>
  says({ hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision, ...more } })
const changes = (input: object) => decides('allow', { updatedInput: input })
const objects = shell('echo "not on this machine" >&2; exit 2')
const agrees = shell('exit 0')

/** A policy whose hooks are these scripts, in order, all of one event. */
function hooksOf(event: string, scripts: readonly string[], hook: object = {}, options: object = {}): Policy {
  const folder = folderOf(Object.fromEntries(scripts.map((script, i) => [`hook-${i}`, script])))
  const hooks = scripts.map((_, i) => ({ type: 'command', command: `./hook-${i}`, ...hook }))
  return commandHooks({ hooks: { [event]: [{ hooks }] }, cwd: folder, ...options })
}

/** What came of asking the hooks about a call of `shell`. */
const before = (scripts: readonly string[], asking: object = {}) => ask(hooksOf('PreToolUse', scripts), asking)

describe('what a hook says before a tool call', () => {
  it.each([
    { name: 'nothing is no objection', script: agrees, verdict: { action: 'proceed' } },
    { name: 'an empty object is no objection', script: says({}), verdict: { action: 'proceed' } },
    {
      name: 'exit code 2 is a no, for the reason on stderr',
      script: objects,
      verdict: { action: 'reject', reason: 'not on this machine' },
    },
    {
      name: 'exit code 2 is a no whatever stands on stdout',
      script: shell(`echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'; exit 2`),
      verdict: { action: 'reject', reason: 'refused by hook "./hook-0"' },
    },
    {
      name: 'deny',
      script: decides('deny', { permissionDecisionReason: 'no' }),
      verdict: { action: 'reject', reason: 'no' },
    },
    {
      name: 'block, as it was once written',
      script: says({ decision: 'block', reason: 'no' }),
      verdict: { action: 'reject', reason: 'no' },
    },
    { name: 'approve, as it was once written', script: says({ decision: 'approve' }), verdict: { action: 'proceed' } },
    {
      name: 'that all should stop is a no to this call',
      script: says({ continue: false, stopReason: 'enough' }),
      verdict: { action: 'reject', reason: 'enough' },
    },
    {
      name: 'a no counts whatever else it says',
      script: decides('deny', { ruleId: 'r1', severity: 'critical' }),
      verdict: { action: 'reject', reason: 'refused' },
    },
    {
      name: 'other arguments',
      script: changes({ cmd: 'ls -l' }),
      verdict: { action: 'modify', input: { cmd: 'ls -l' } },
    },
    {
      name: 'a message for people is a warning',
      script: says({ systemMessage: 'odd' }),
      verdict: { action: 'proceed', warnings: ['odd'] },
    },
  ])('$name', async ({ script, verdict }) => expect(await before([script])).toEqual(verdict))

  it('ask lets the call wait for a person', async () => {
    const question = { question: 'Sure?', tool: 'shell', input: { cmd: 'ls' }, schema: { type: 'boolean' } }
    expect(await before([decides('ask', { permissionDecisionReason: 'Sure?' })])).toEqual({
      action: 'suspend',
      ask: question,
    })
  })
})

describe('an answer that is not understood in full is a failure', () => {
  it.each([
    {
      name: 'A7: a word that is no decision',
      script: decides('block'),
      error: /answered "block"; a permissionDecision is one of/,
    },
    {
      name: 'A7: another word of another dialect',
      script: says({ verdict: 'block' }),
      error: /answered with "verdict", which does nothing here/,
    },
    {
      name: 'A8: a field that does nothing',
      script: decides('allow', { severity: 'low' }),
      error: /answered with "severity"/,
    },
    {
      name: 'A8: an answer for another event',
      script: says({ hookSpecificOutput: { hookEventName: 'PostToolUse' } }),
      error: /for the event "PostToolUse"/,
    },
    {
      name: 'context, which has no place before a call',
      script: says({ hookSpecificOutput: { additionalContext: 'x' } }),
      error: /additionalContext/,
    },
    { name: 'an answer that comes later', script: says({ async: true }), error: /"async", which does nothing here/ },
    { name: 'broken JSON', script: shell(`echo '{"decision": "block"'`), error: /printed what is no answer/ },
    {
      name: 'another exit code',
      script: shell('echo "no such file" >&2; exit 1'),
      error: /PreToolUse hook ".\/hook-0" ended with exit code 1: no such file/,
    },
    { name: 'a command that is not there', script: shell('./missing'), error: /ended with exit code 127/ },
  ])('$name', async ({ script, error }) => {
    await expect(before([script])).rejects.toThrow(error)
  })

  it('too much output', async () => {
    await expect(before([shell('head -c 2000000 /dev/zero')])).rejects.toThrow(/printed more than a hook may/)
  })
  it('no answer in its time', async () => {
    await expect(ask(hooksOf('PreToolUse', [shell('sleep 60')], { timeout: 0.2 }))).rejects.toThrow(/timed out/)
  })
  it('unless that hook is to block when it fails', async () => {
    const verdict = await ask(hooksOf('PreToolUse', [shell('exit 1')], { onFailure: 'block' }))
    expect(verdict).toEqual({ action: 'reject', reason: expect.stringContaining('ended with exit code 1') })
  })
})

describe('several hooks of one event', () => {
  const all = { allow: decides('allow'), ask: decides('ask'), defer: decides('defer'), deny: decides('deny') }
  const actions = { allow: 'proceed', ask: 'suspend', defer: 'suspend', deny: 'reject' }
  const order = ['allow', 'ask', 'defer', 'deny'] as const
  const pairs = order.flatMap((one) => order.map((other) => ({ one, other })))
  it.each(pairs)('A9: $one, then $other: the stronger counts', async ({ one, other }) => {
    const strongest = order[Math.max(order.indexOf(one), order.indexOf(other))] as keyof typeof actions
    expect(await before([all[one], all[other]])).toMatchObject({ action: actions[strongest] })
  })
  it('A4: each is asked about what the ones before it left, and silence undoes nothing', async () => {
    const adds = (flag: string) =>
      shell(`${process.execPath} -e '
        const { tool_input } = JSON.parse(require("fs").readFileSync(0))
        const { cmd } = tool_input
        const updatedInput = { cmd: cmd.includes("${flag}") ? cmd : cmd + " ${flag}" }
        console.log(JSON.stringify({ hookSpecificOutput: { permissionDecision: "allow", updatedInput } }))'`)
    expect(await before([adds('-a'), agrees, adds('-l')])).toEqual({ action: 'modify', input: { cmd: 'ls -a -l' } })
  })
  const refusesFlag = shell('case "$(cat)" in *-rf*) exit 2;; esac')
  it('A2: what a later hook changed is judged by the ones before it too', async () => {
    expect(await before([refusesFlag, changes({ cmd: 'rm -rf /' })])).toMatchObject({ action: 'reject' })
    expect(await before([refusesFlag, changes({ cmd: 'ls -l' })])).toMatchObject({ action: 'modify' })
  })
  it('two that undo each other are a failure', async () => {
    await expect(before([changes({ cmd: 'a' }), changes({ cmd: 'b' })])).rejects.toThrow(/changed again/)
  })
  it('after a no, the others are not asked', async () => {
    const folder = folderOf({})
    const hooks = [
      { type: 'command', command: 'exit 2' },
      { type: 'command', command: 'touch asked' },
    ]
    const verdict = await ask(commandHooks({ hooks: { PreToolUse: [{ hooks }] }, cwd: folder }))
    expect(verdict).toMatchObject({ action: 'reject' })
    expect(existsSync(join(folder, 'asked'))).toBe(false)
  })
})

describe('which hooks are asked', () => {
  const asked = async (matcher: string | undefined, subject: object) => {
    const policy = commandHooks({
      hooks: { PreToolUse: [{ matcher, hooks: [{ type: 'command', command: 'exit 2' }] }] },
    })
    return ((await ask(policy, { subject })) as { action: string }).action === 'reject'
  }
  it.each([
    { matcher: undefined, toolName: 'Bash', is: true },
    { matcher: '*', toolName: 'Bash', is: true },
    { matcher: 'Bash', toolName: 'Bash', is: true },
    { matcher: 'Bash', toolName: 'BashOutput', is: false },
    { matcher: 'bash', toolName: 'Bash', is: false },
    { matcher: 'Edit|Write', toolName: 'Write', is: true },
    { matcher: 'my-tool', toolName: 'my-tool-2', is: false },
    { matcher: 'Note.*', toolName: 'NotebookEdit', is: true },
    { matcher: 'mcp__.*__delete', toolName: 'delete_all', source: 'mcp:files', is: true },
  ])('$matcher, and a call of $toolName: $is', async ({ matcher, toolName, source, is }) => {
    expect(await asked(matcher, { toolName, source })).toBe(is)
  })
})

describe('settings under which a hook would not take effect are refused', () => {
  const hook = { type: 'command', command: './a' }
  it.each([
    { name: 'an unknown event', hooks: { PreTool: [] }, error: /hooks\.PreTool is no event; events are: SessionStart/ },
    { name: 'no event', hooks: {}, error: /must be an object of events/ },
    {
      name: 'another kind',
      hooks: { PreToolUse: [{ hooks: [{ type: 'prompt', prompt: 'x' }] }] },
      error: /hooks\[0\]\.prompt is not known/,
    },
    {
      name: 'a field that is not known',
      hooks: { PreToolUse: [{ hooks: [{ ...hook, if: 'Bash(git *)' }] }] },
      error: /\.if is not known/,
    },
    { name: 'a comma', hooks: { PreToolUse: [{ matcher: 'A,B', hooks: [hook] }] }, error: /comma.*write A\|B/ },
    {
      name: 'a broken expression',
      hooks: { PreToolUse: [{ matcher: '(', hooks: [hook] }] },
      error: /no regular expression/,
    },
    {
      name: 'a matcher where there is no name',
      hooks: { UserPromptSubmit: [{ matcher: 'x', hooks: [hook] }] },
      error: /has no name to match/,
    },
    {
      name: 'seconds that are none',
      hooks: { PreToolUse: [{ hooks: [{ ...hook, timeout: 0 }] }] },
      error: /seconds above 0/,
    },
  ])('$name', ({ hooks, error }) => expect(() => commandHooks({ hooks })).toThrow(error))
})

const call = (id: string, args: object): ScriptedReply => ({
  tool_calls: [{ id, name: 'shell', arguments: args as JsonObject }],
})

/** An agent that calls `shell` once, under these policies; `ran` is what the tool was given. */
async function run(policies: readonly Policy[], more: object = {}) {
  const ran: Json[] = []
  const shellTool: Tool = tool('shell', {
    description: 'Runs a command.',
    input: z.object({ cmd: z.string() }),
    run: (args) => {
      ran.push(args)
      if (args.cmd === 'false') throw new Error('exit code 1')
      return 'a result'
    },
  })
  const model = scripted([call('c1', { cmd: 'ls' }), 'done'])
  const agent = createAgent({ model, tools: [shellTool] })
  const played: Play<unknown> = await play(agent, { input: 'list files' as never, policies, ...more })
  return { ran, model, ...played }
}

describe('in front of an agent', () => {
  it('settings of a coding agent are a policy', async () => {
    const cwd = folderOf({ 'guard.sh': objects })
    //#region install
    const policies = [
      commandHooks({
        hooks: { PreToolUse: [{ matcher: 'shell', hooks: [{ type: 'command', command: './guard.sh', timeout: 2 }] }] },
        cwd,
      }),
    ]
    //#endregion
    expect((await run(policies)).ran).toEqual([])
  })
  it('a no is a reply, and the tool does not run', async () => {
    const { status, ran, toolMessages } = await run([hooksOf('PreToolUse', [objects])])
    expect({ status, ran }).toEqual({ status: 'completed', ran: [] })
    expect(toolMessages).toEqual([{ id: 'c1', content: expect.stringContaining('not on this machine') }])
  })
  it('a failing hook ends the run', async () => {
    const { status, ran, error } = await run([hooksOf('PreToolUse', [shell('exit 1')])])
    expect({ status, ran, error }).toMatchObject({ status: 'failed', ran: [], error: { name: 'MiddlewareError' } })
  })
  it('what is run is what the hooks made of it', async () => {
    const { ran } = await run([hooksOf('PreToolUse', [changes({ cmd: 'ls -l' })])])
    expect(ran).toEqual([{ cmd: 'ls -l' }])
  })
  it.each([
    { name: 'true runs it', answer: true, ran: [{ cmd: 'ls' }] },
    { name: 'false refuses it', answer: false, ran: [] },
  ])('ask: $name', async ({ answer, ran }) => {
    const played = await run([hooksOf('PreToolUse', [decides('ask')])], { answer: () => answer })
    expect({ status: played.status, ran: played.ran }).toEqual({ status: 'completed', ran })
  })
  it('A9: an answer does not lift what another hook denies', async () => {
    const denies = shell('[ -e asked ] && exit 2; touch asked; exit 0')
    const { ran, toolMessages } = await run([hooksOf('PreToolUse', [decides('ask'), denies])], { answer: () => true })
    expect(ran).toEqual([])
    expect(toolMessages).toHaveLength(1)
  })
  it('ask with other arguments: the person confirms those very arguments', async () => {
    const policy = hooksOf('PreToolUse', [decides('ask', { updatedInput: { cmd: 'ls -l' } })])
    const { ran, asked } = await run([policy], { answer: ({ payload }: { payload: { yes: string } }) => payload.yes })
    expect(asked.map(({ payload }) => payload)).toEqual([expect.objectContaining({ input: { cmd: 'ls -l' } })])
    expect(ran).toEqual([{ cmd: 'ls -l' }])
  })
  it('ask with arguments that are others each time: no answer opens it', async () => {
    const counts = shell(`n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n
      echo '{"hookSpecificOutput":{"permissionDecision":"ask","updatedInput":{"cmd":"ls '$n'"}}}'`)
    const { status, ran } = await run([hooksOf('PreToolUse', [counts])], {
      answer: ({ payload }: { payload: { yes: string } }) => payload.yes,
    })
    expect({ status, ran }).toEqual({ status: 'failed', ran: [] })
  })
  it('defer: after an answer the hooks decide anew', async () => {
    const later = shell(`[ -e open ] && exit 0; touch open
      echo '{"hookSpecificOutput":{"permissionDecision":"defer"}}'`)
    const { ran, asked } = await run([hooksOf('PreToolUse', [later])], { answer: () => true })
    expect({ ran, asked: asked.length }).toEqual({ ran: [{ cmd: 'ls' }], asked: 1 })
  })
})

describe('after a tool call', () => {
  const after = (script: string) => run([hooksOf('PostToolUse', [script])])
  const told = async (script: string) => (await after(script)).toolMessages[0]?.content
  const output = (fields: object) => says({ hookSpecificOutput: { hookEventName: 'PostToolUse', ...fields } })

  it('block withholds the result, and the run goes on', async () => {
    const content = await told(says({ decision: 'block', reason: 'tainted' }))
    expect(content).toContain('tainted')
    expect(content).not.toContain('a result')
  })
  it('another result takes its place', async () => {
    expect(await told(output({ updatedToolOutput: 'cleaned' }))).toBe('cleaned')
  })
  it('context is added to a text', async () => {
    expect(await told(output({ additionalContext: 'Run the tests.' }))).toBe('a result\n\nRun the tests.')
  })
  it('a failed call is told of, and stays as it was', async () => {
    const folder = folderOf({})
    const hooks = { PostToolUseFailure: [{ hooks: [{ type: 'command', command: 'cat > told; exit 2' }] }] }
    const policy = commandHooks({ hooks, cwd: folder, env: { PATH: process.env.PATH ?? '' } })
    const error = { name: 'Error', message: 'exit code 1' }
    const verdict = await ask(policy, { half: 'after', outcome: { ok: false, error } })
    expect(verdict).toMatchObject({ action: 'pass', warnings: [expect.stringContaining('refused by hook')] })
    expect(JSON.parse(readFileSync(join(folder, 'told'), 'utf8'))).toMatchObject({
      hook_event_name: 'PostToolUseFailure',
      error: 'exit code 1',
    })
  })
})

describe('at the start and the end of a run', () => {
  it('a refused prompt ends the run', async () => {
    const { status, error } = await run([hooksOf('UserPromptSubmit', [objects])])
    expect({ status, error }).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('not on this machine') },
    })
  })
  it('plain text of a start or a prompt is context for the model', async () => {
    const { model } = await run([hooksOf('SessionStart', [shell('echo "It is Monday."')])])
    expect(model.requests[0]?.messages.map(({ content }) => content)).toEqual(['list files', 'It is Monday.'])
  })
  it('context has no place where the input is no conversation', async () => {
    const asking = {
      seam: 'run',
      subject: { graphName: 'g', resuming: false, nested: false },
      input: { n: 1 },
    } as const
    await expect(ask(hooksOf('SessionStart', [shell('echo x')]), asking)).rejects.toThrow(/the input has no "messages"/)
  })
  it('the end decides nothing', async () => {
    expect((await run([hooksOf('SessionEnd', [objects])])).status).toBe('completed')
  })
})

describe('what a hook is told and given', () => {
  const tellsIn = async (event: string, asking: object, env?: object) => {
    const folder = folderOf({})
    const command = 'cat > told; env > given'
    const policy = commandHooks({
      hooks: { [event]: [{ hooks: [{ type: 'command', command }] }] },
      cwd: folder,
      ...env,
    })
    await ask(policy, asking)
    return {
      folder,
      told: JSON.parse(readFileSync(join(folder, 'told'), 'utf8')),
      given: readFileSync(join(folder, 'given'), 'utf8'),
    }
  }
  const OPTIONAL = ['prompt_id', 'effort', 'duration_ms', 'model']
  const askings: Readonly<Record<string, object>> = {
    SessionStart: { seam: 'run', subject: { resuming: false, nested: false }, input: {} },
    UserPromptSubmit: { seam: 'run', subject: { resuming: false, nested: false }, input: { query: 'hi' } },
    PreToolUse: {},
    PostToolUse: { half: 'after', outcome: { ok: true, value: 'ok' } },
    PostToolUseFailure: { half: 'after', outcome: { ok: false, error: { name: 'Error', message: 'failed' } } },
    SessionEnd: { seam: 'run', half: 'after', subject: { nested: false }, outcome: { ok: true, value: {} } },
  }
  it
    .skipIf(!isThere)
    .each(inputs('claude-code-inputs.json').filter(({ hook_event_name }) => hook_event_name in EVENTS))(
    'at $hook_event_name: the fields of the published input',
    async (published) => {
      const { told } = await tellsIn(published.hook_event_name, askings[published.hook_event_name] as object)
      const expected = Object.keys(published).filter((field) => !OPTIONAL.includes(field))
      expect(Object.keys(told).toSorted()).toEqual(expected.toSorted())
    },
  )
  it.skipIf(!isThere)('every published event is served or refused with a reason', () => {
    const events = [...inputs('claude-code-inputs.json'), ...inputs('codex-inputs.json')].map(
      (input) => input.hook_event_name,
    )
    const known = new Set([...Object.keys(EVENTS), ...Object.keys(REFUSED_EVENTS)])
    expect(events.filter((event) => !known.has(event))).toEqual([])
  })
  it('nothing of the environment but what is named, and no thread', async () => {
    const { folder, told, given } = await tellsIn('PreToolUse', {}, { env: { PATH: '/usr/bin:/bin', TOKEN: 't' } })
    const names = given.split('\n').map((line) => line.split('=')[0])
    expect(names.filter((name) => !['PWD', 'OLDPWD', '_', 'SHLVL', ''].includes(name as string)).toSorted()).toEqual([
      'CLAUDE_PROJECT_DIR',
      'PATH',
      'TOKEN',
    ])
    expect(told).toMatchObject({
      cwd: folder,
      transcript_path: '/dev/null',
      tool_name: 'shell',
      tool_input: { cmd: 'ls' },
      tool_use_id: 'call-1',
    })
  })
})

describe.skipIf(!isThere)('answers of a hook that is out there', () => {
  it.each(['deny_filesystem', 'deny_git', 'deny_git_reset', 'allow_simple'])('%s', async (name) => {
    const text = readFileSync(`${corpus}/command-hooks/pretooluse-golden/${name}.json`, 'utf8')
    const reason = JSON.parse(text).hookSpecificOutput?.permissionDecisionReason
    const verdict = await before([shell(`cat <<'ANSWER'\n${text}\nANSWER`)])
    expect(verdict).toEqual(reason === undefined ? { action: 'proceed' } : { action: 'reject', reason })
  })
})

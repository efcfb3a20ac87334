import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { liveChildren } from '../child/child.ts'
import { folderOf } from '../testing/folder.ts'
import { chain, eventsOn, fileOf, hostOf, pluginFolder, runOn, text } from '../testing/host.ts'
import { builtRuntime } from '../testing/runtime.ts'
import { openHost } from './host.ts'

const runtime = builtRuntime()
const NODE = `#!${process.execPath}\n`
const ECHO = `${NODE}process.stdin.pipe(process.stdout)`

const agent = (more: object) => ({
  component_type: 'AgentNode',
  agent: {
    component_type: 'Agent',
    name: 'helper',
    system_prompt: 'Help.',
    llm_config: { component_type: 'Stub', name: 'stub', model_id: 'stub-1', flavour: 'mint' },
    ...more,
  },
})
const toolNode = (name: string) => ({
  component_type: 'ToolNode',
  tool: { component_type: 'ServerTool', name, inputs: [text('said')] },
})

/** A plugin with one of everything that a flow may name. */
const everything = () =>
  pluginFolder(
    `serve({
       Shout: {
         async execute({ said }, ctx) {
           const { mark, name, component_type } = ctx.component
           ctx.emitEvent('shouting', { said })
           const { said: heard } = await ctx.runTool('echo', { said: said + mark })
           return { output: { heard, as: name + ' ' + component_type }, branch: 'done' }
         },
       },
       Polite: { apply: (messages, ctx) => ({ action: 'modify', messages: messages.map((m) => ({ ...m, content: m.content + ctx.component.word })) }) },
       Stub: { chat: ({ messages, model }, ctx) => ({ content: model + ' ' + ctx.component.flavour + ': ' + messages.at(-1).content, finish_reason: 'stop' }) },
       Gate: { toolCall: { before: ({ subject }, ctx) => {
         ctx.emitEvent('asked', { ...subject, settings: ctx.component })
         return { action: 'proceed' }
       } } },
     }, { tools: { served: ({ said }) => ({ served: said }) } })`,
    {
      capabilities: ['emitEvent', 'runTool'],
      components: [
        {
          componentType: 'Shout',
          inputs: [text('said')],
          schema: { type: 'object', properties: { mark: { type: 'string' } } },
        },
        { componentType: 'Polite', kind: 'transform', phase: 'both' },
        { componentType: 'Stub', kind: 'provider' },
        { componentType: 'Served' },
        { componentType: 'Gate', kind: 'middleware', seams: { toolCall: ['before'] } },
      ],
      tools: [{ name: 'served', componentType: 'Served', inputSchema: { type: 'object' } }],
    },
  )

describe('a host', () => {
  it('runs a plugin node, whose own tool calls reach the policies as calls of a plugin', async () => {
    const tools = folderOf({ echo: ECHO })
    const host = await hostOf({
      plugins: [everything().manifest],
      pluginConfig: ['Gate={"strict":true}'],
      toolsDir: tools,
      runtime,
    })
    const flow = fileOf(chain({ shout: { component_type: 'Shout', mark: '!' } }, [text('said')]))
    const events = await eventsOn(host, flow, { said: 'hey' })
    expect(events.at(-1)).toMatchObject({
      status: 'completed',
      result: { said: 'hey', heard: 'hey!', as: 'shout Shout' },
    })
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'plugin:Shout:shouting',
        nodeName: 'shout',
        nodeType: 'Shout',
        data: { said: 'hey' },
      }),
    )
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'plugin:Gate:asked',
        data: {
          nodeName: 'shout',
          nodeType: 'Shout',
          toolName: 'echo',
          toolCallId: expect.any(String),
          caller: 'plugin',
          source: 'tools-dir',
          settings: { strict: true },
        },
      }),
    )
  })

  it('applies a plugin transform and asks the model of a plugin, each shown what the document writes', async () => {
    const host = await hostOf({ plugins: [everything().manifest], runtime })
    const transforms = [{ component_type: 'Polite', name: 'polite', word: ' please' }]
    const { state } = await runOn(host, fileOf(chain({ ask: agent({ transforms }) }, [text('task')])), { task: 'go' })
    expect(state).toEqual({
      task: 'go',
      result: 'stub-1 mint: {"task":"go"} please please',
      transform_status: 'ok',
    })
  })

  it("lets a component ask the model that its own settings name, a plugin's too", async () => {
    const asking = pluginFolder(
      `serve({
         Ask: { execute: async (_, ctx) => ({ output: await ctx.callModel({ messages: [{ role: 'user', content: 'who?' }] }) }) },
         Mine: { chat: (_, ctx) => ({ content: 'it is ' + ctx.component.name, finish_reason: 'stop' }) },
       })`,
      {
        capabilities: ['callModel'],
        components: [{ componentType: 'Ask' }, { componentType: 'Mine', kind: 'provider' }],
      },
    )
    const host = await hostOf({ plugins: [asking.manifest], runtime })
    const llm_config = { component_type: 'Mine', name: 'me', id: 'mine' }
    const { state } = await runOn(host, fileOf(chain({ ask: { component_type: 'Ask', llm_config } })))
    expect(state).toMatchObject({ content: 'it is me' })
    const { error } = await runOn(host, fileOf(chain({ ask: { component_type: 'Ask' } })))
    expect(error).toMatchObject({ message: expect.stringContaining('names no llm_config') })
  })

  it('calls tools of plugins and of a folder by the same names as a document', async () => {
    const host = await hostOf({ plugins: [everything().manifest], toolsDir: folderOf({ 'echo.mjs': ECHO }), runtime })
    const flow = fileOf(chain({ one: toolNode('echo'), two: toolNode('served') }, [text('said')]))
    const events = await eventsOn(host, flow, { said: 'hi' })
    expect(events.at(-1)).toMatchObject({ result: { said: 'hi', served: 'hi' } })
    const asked = events.filter(({ type }) => type === 'plugin:Gate:asked')
    expect(asked).toMatchObject([{ data: { source: 'tools-dir' } }, { data: { source: 'plugin:tested' } }])
  })

  it('gives programs of a folder its environment, and plugins only what is named', async () => {
    const seeing = pluginFolder(
      `serve({ See: { execute: () => ({ output: { plugin: process.env.TOKEN ?? 'none' } }) } })`,
      {
        components: [{ componentType: 'See' }],
      },
    )
    const toolsDir = folderOf({ look: `${NODE}console.log(JSON.stringify({ tool: process.env.TOKEN }))` })
    const flow = fileOf(
      chain({
        see: { component_type: 'See' },
        look: { component_type: 'ToolNode', tool: { component_type: 'ServerTool', name: 'look' } },
      }),
    )
    const env = { PATH: process.env.PATH, TOKEN: 'secret' }
    const options = { plugins: [seeing.manifest], toolsDir, env, runtime }
    expect((await runOn(await hostOf(options), flow)).state).toEqual({ plugin: 'none', tool: 'secret' })
    const named = await hostOf({ ...options, pluginEnv: ['TOKEN'] })
    expect((await runOn(named, flow)).state).toEqual({ plugin: 'secret', tool: 'secret' })
  })

  it('holds runs to its limits', async () => {
    const host = await hostOf({ toolsDir: folderOf({ echo: ECHO }), limits: { maxIterations: 2 } })
    const { error } = await runOn(host, fileOf(chain({ one: toolNode('echo') }, [text('said')])), { said: 'hi' })
    expect(error).toMatchObject({ code: 'MAX_ITERATIONS' })
  })

  it('says what a document of any kind is', async () => {
    const host = await hostOf({})
    const flow = fileOf(chain({}))
    expect((await host.loadDocument(flow)).kind).toBe('flow')
    await expect(host.loadDocument(`${flow}.gone`)).rejects.toMatchObject({ code: 'FLOW_FILE' })
    await expect(host.loadFlow(`${flow}.gone`)).rejects.toMatchObject({ code: 'FLOW_FILE' })
  })

  it('starts no process before one is asked, for a flow that uses it either (M1), and leaves none when it is closed', async () => {
    const plugin = everything()
    const host = await openHost({ plugins: [plugin.manifest], toolsDir: folderOf({ echo: ECHO }), runtime })
    const flow = fileOf(chain({ one: toolNode('served') }, [text('said')]))
    await host.loadFlow(flow)
    expect(liveChildren()).toBe(0)
    expect((await runOn(host, flow, { said: 'hi' })).status).toBe('completed')
    expect(liveChildren()).toBe(1)
    await host.close()
    expect(liveChildren()).toBe(0)
    expect(spawnSync('ps', ['-eo', 'args='], { encoding: 'utf8' }).stdout).not.toContain(plugin.folder)
  })
})

describe('a host that cannot be opened', () => {
  it.each([
    { name: 'no such manifest', options: { plugins: ['/nowhere.json'] }, code: 'PLUGIN_MANIFEST_FILE' },
    {
      name: 'settings of no type that is loaded (E8)',
      options: { pluginConfig: ['Gate={}'] },
      code: 'PLUGIN_CONFIG_TYPE',
    },
    { name: 'settings that are none', options: { pluginConfig: ['Gate'] }, code: 'PLUGIN_CONFIG_ARGUMENT' },
    { name: 'a variable that is none', options: { pluginEnv: ['A B'] }, code: 'PLUGIN_ENV' },
    { name: 'no such folder of tools', options: { toolsDir: '/nowhere' }, code: 'TOOLS_DIR' },
    { name: 'a limit that is none', options: { limits: { maxIterations: 0 } }, code: 'LIMIT_INVALID' },
  ])('says why: $name', async ({ options, code }) => {
    await expect(openHost(options)).rejects.toMatchObject({ code })
  })

  it('when a tool of a plugin has the name of one in the folder', async () => {
    const { manifest, folder } = everything()
    const toolsDir = folderOf({ served: ECHO })
    await expect(openHost({ plugins: [manifest], toolsDir, runtime })).rejects.toMatchObject({ code: 'TOOL_DUPLICATE' })
    expect(spawnSync('ps', ['-eo', 'args='], { encoding: 'utf8' }).stdout).not.toContain(join(folder, 'tested.mjs'))
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { agentGraph, calls, strict, user } from '../../../testing/agent.ts'
import { MemoryFiles } from '../../../testing/files.ts'
import { says } from '../../../testing/play.ts'
import {
  type ChatMessage,
  type ChatModel,
  createAgent,
  createRuntime,
  FilesystemMemory,
  type JsonObject,
  type MemoryOptions,
  type ScriptedReply,
  ToolInterruptMiddleware,
  type WritableFiles,
} from '../../index.ts'
import { rank } from './bm25.ts'

//#region memory
/** An agent that knows each of its users again. */
const knowing = (model: ChatModel, files: WritableFiles) =>
  createAgent({
    model,
    middleware: [
      new FilesystemMemory({
        files,
        scope: ({ context }) => `user:${(context as { userId: string }).userId}`,
      }),
    ],
  })
//#endregion

const results = (said: readonly ChatMessage[]) =>
  said.flatMap(({ role, content }) =>
    role === 'tool' ? [content.startsWith('{') ? JSON.parse(content) : content] : [],
  )

/** What the tools give when a model calls them one after another. */
async function play(made: readonly (readonly [name: string, args: object])[], options: Partial<MemoryOptions> = {}) {
  const files = new MemoryFiles()
  let now = 0
  const memory = new FilesystemMemory({ files, scope: 'team:support', time: () => ++now, ...options })
  const replies: readonly ScriptedReply[] = [...made.map((call) => calls(call)), 'done']
  const agent = agentGraph({ model: strict(replies), tools: memory.tools(), middleware: [memory] })
  const { state } = await createRuntime().run(agent, user('go'))
  return { given: results(state.messages), files: (options.files ?? files) as MemoryFiles }
}

const save = (key: string, content: string, rest: object = {}) =>
  ['save_memory', { key, title: `About ${key}`, content, ...rest }] as const
const list = ['list_memories', {}] as const
const search = (query: string, rest: object = {}) => ['search_memory', { query, ...rest }] as const
const forget = (key: string) => ['delete_memory', { key }] as const

const kept = (key: string, content: string, at = 1) => ({
  key,
  title: `About ${key}`,
  content,
  memoryType: 'fact',
  scope: 'team:support',
  createdAt: at,
  updatedAt: at,
})

describe('a memory', () => {
  it('is saved in a file of its scope, and is found, listed and forgotten', async () => {
    const { given, files } = await play([
      save('colour', 'She likes green.'),
      search('green'),
      list,
      forget('colour'),
      forget('colour'),
      list,
    ])
    const { content: _, scope: _scope, ...entry } = kept('colour', '')
    expect(given).toEqual([
      kept('colour', 'She likes green.'),
      { query: 'green', results: [kept('colour', 'She likes green.')], skipped: [] },
      { scope: 'team:support', entries: [entry], skipped: [] },
      { key: 'colour', scope: 'team:support', deleted: true },
      { key: 'colour', scope: 'team:support', deleted: false },
      { scope: 'team:support', entries: [], skipped: [] },
    ])
    expect([...files.texts.keys()]).toEqual([])
  })

  it('stands under its scope and its key', async () => {
    const { files } = await play([save('colour', 'green')])
    expect([...files.texts.keys()]).toEqual(['memories/team/support/colour.json'])
    expect(JSON.parse(files.texts.get('memories/team/support/colour.json') as string)).toEqual(kept('colour', 'green'))
  })

  it('H32: that is saved again keeps the time it was made, and has a new one of its change', async () => {
    const { given } = await play([save('colour', 'green'), save('colour', 'red', { memoryType: 'preference' }), list])
    expect(given[1]).toEqual({ ...kept('colour', 'red'), memoryType: 'preference', updatedAt: 2 })
    expect(given[2].entries).toHaveLength(1)
  })

  it('H29: has the scope that code gives it: a model that names one is told that there is none', async () => {
    const { given, files } = await play([
      save('colour', 'green', { scope: 'team:board' }),
      ['list_memories', { scope: 'team:board' }],
      ['search_memory', { query: 'a', scope: 'x' }],
      ['delete_memory', { key: 'a', scope: 'x' }],
    ])
    for (const each of given) expect(each).toMatch(/^Error: .* has no "scope"/)
    expect(files.texts.size).toBe(0)
  })

  it('H30: of one user is no other user’s: the scope comes from the run’s context', async () => {
    const files = new MemoryFiles()
    const play = async (userId: string, ...made: readonly (readonly [string, object])[]) => {
      const agent = knowing(strict([...made.map((call) => calls(call)), 'done']), files)
      const { state } = await createRuntime().run(agent, 'hello', { context: { userId } })
      return results(state.messages)
    }
    await play('ann', save('colour', 'green'))
    expect(await play('bob', list, search('green'), forget('colour'))).toMatchObject([
      { scope: 'user:bob', entries: [] },
      { results: [] },
      { deleted: false },
    ])
    expect(await play('ann', list)).toMatchObject([{ entries: [{ key: 'colour' }] }])
    expect([...files.texts.keys()]).toEqual(['memories/user/ann/colour.json'])
  })

  it('of a scope below is not this scope’s', async () => {
    const files = new MemoryFiles()
    await play([save('a', 'x')], { files, scope: 'team:support:night' })
    const { given } = await play([list, search('x')], { files })
    expect(given).toMatchObject([{ entries: [] }, { results: [] }])
  })

  it('is found by an agent on another thread, in another process', async () => {
    const files = new MemoryFiles()
    await play([save('colour', 'green')], { files })
    expect((await play([list], { files })).given).toMatchObject([{ entries: [{ key: 'colour' }] }])
  })

  it('is saved once for each call of a round, and of two with one key one stands', async () => {
    const files = new MemoryFiles()
    const memory = new FilesystemMemory({ files, scope: 's' })
    const round = calls(save('a', 'one'), save('b', 'two'), save('a', 'three'))
    await createRuntime().run(agentGraph({ model: strict([round, 'done']), tools: memory.tools() }), user('go'))
    expect([...files.texts.keys()].toSorted()).toEqual(['memories/s/a.json', 'memories/s/b.json'])
  })

  it('is saved past policies and approvals like any call', async () => {
    const files = new MemoryFiles()
    const memory = new FilesystemMemory({ files, scope: 's' })
    const asks = new ToolInterruptMiddleware({ rules: [{ tool: 'save_memory' }] })
    const make = () =>
      agentGraph({
        model: strict([calls(save('a', 'one')), 'done']),
        tools: memory.tools(),
        middleware: [memory, asks],
      })
    const paused = await createRuntime().run(make(), user('go'), { thread: 't' })
    const no = says('No', { 'toolCall.before': { action: 'reject', reason: 'no' } })
    const { state } = await createRuntime({ policies: [no] }).run(
      agentGraph({ model: strict([calls(save('a', 'one')), 'done']), tools: memory.tools() }),
      user('go'),
    )
    expect([paused.status, results(state.messages), files.texts.size]).toEqual(['paused', ['Refused: no'], 0])
  })
})

describe('H31: a file that cannot be read', () => {
  const broken = {
    'memories/team/support/latin.json': null,
    'memories/team/support/torn.json': '{"key":"torn","ti',
    'memories/team/support/list.json': '[]',
    'memories/team/support/half.json': '{"key":"half"}',
    'memories/team/support/moved.json': JSON.stringify(kept('colour', 'green')),
  }
  const paths = Object.keys(broken).toSorted()

  it('is named by a list and by a search, which give the rest', async () => {
    const files = new MemoryFiles({ ...broken, 'memories/team/support/note.txt': '' })
    const { given } = await play([save('colour', 'green'), list, search('green')], { files })
    expect(given[1].entries.map(({ key }: { key: string }) => key)).toEqual(['colour'])
    expect(given[1].skipped.toSorted()).toEqual(paths)
    expect(given[2].results).toHaveLength(1)
    expect(given[2].skipped.toSorted()).toEqual(paths)
  })

  it.each(['latin', 'torn', 'list', 'half'])('is not written over, and stays as it was: %s', async (key) => {
    const files = new MemoryFiles(broken)
    const { given } = await play([save(key, 'new')], { files })
    expect(given[0]).toMatch(new RegExp(`^Error: the memory "${key}" cannot be read, and is left as it is`))
    expect(Object.fromEntries(files.texts)).toEqual(broken)
  })

  it('may be forgotten', async () => {
    const files = new MemoryFiles(broken)
    const { given } = await play([forget('torn'), save('torn', 'new')], { files })
    expect(given).toMatchObject([{ deleted: true }, { content: 'new' }])
  })
})

describe('H33: a name', () => {
  const refused = ['', '.', '..', 'con', 'NUL', 'com1', 'lpt9.txt', 'x'.repeat(181)]
  it.each(refused)('that leads elsewhere, or is none, is refused as a key: %j', async (key) => {
    const { given, files } = await play([save(key, 'x'), forget(key)])
    for (const each of given) expect(each).toMatch(/^Error: /)
    expect(files.texts.size).toBe(0)
  })

  it.each(refused)('that leads elsewhere, or is none, is refused as a part of a scope: %j', async (part) => {
    const files = new MemoryFiles()
    for (const scope of [part, `team:${part}`, `${part}:team`]) {
      expect(() => new FilesystemMemory({ files, scope })).toThrow(expect.objectContaining({ code: 'PATH_REFUSED' }))
      const { given } = await play([save('a', 'x')], { files, scope: () => scope })
      expect(given[0]).toMatch(/^Error: the scope/)
    }
    expect(files.texts.size).toBe(0)
  })

  it.each([
    { key: '../../etc/passwd', name: '%2e%2e%2f%2e%2e%2fetc%2fpasswd' },
    { key: 'a/b\\c', name: 'a%2fb%5cc' },
    { key: 'Colour', name: '%43olour' },
    { key: 'é', name: '%c3%a9' },
    { key: 'a:b*?', name: 'a%3ab%2a%3f' },
  ])('is written so that it is a name on every system: $key', async ({ key, name }) => {
    const { given, files } = await play([save(key, 'x'), list])
    expect([...files.texts.keys()]).toEqual([`memories/team/support/${name}.json`])
    expect(given[1].entries).toMatchObject([{ key }])
  })

  it('has a file of its own, also where a system takes large letters for small ones', async () => {
    const word = fc.string({
      unit: fc.constantFrom('a', 'A', '.', '/', 'é', 'É', '%', '2', 'e', '-', ' '),
      minLength: 1,
      maxLength: 4,
    })
    const keys = fc.uniqueArray(
      word.filter((key) => !/^\.{1,2}$|^ +$/.test(key)),
      { minLength: 2, maxLength: 6 },
    )
    await fc.assert(
      fc.asyncProperty(keys, async (all) => {
        const { files } = await play(all.map((key) => save(key, 'x')))
        expect(new Set([...files.texts.keys()].map((path) => path.toLowerCase())).size).toBe(all.length)
      }),
      { numRuns: 40 },
    )
  })

  it('that is no text is refused', async () => {
    const { given } = await play([save('a', 'x')], { scope: (() => 7) as never })
    expect(given[0]).toMatch(/^Error: the scope .* is a number/)
  })
})

describe('a search', () => {
  it('gives the best first, and as many as it is asked for', async () => {
    const { given } = await play([
      save('a', 'green tea, green leaves, green everything'),
      save('b', 'tea'),
      save('c', 'coffee'),
      search('green tea'),
      search('green tea', { topK: 1 }),
      search('water'),
    ])
    expect(given.slice(3).map(({ results: found }) => found.map(({ key }: { key: string }) => key))).toEqual([
      ['a', 'b'],
      ['a'],
      [],
    ])
  })

  it.each([
    { name: 'words in any case', query: 'TEA', texts: ['Tea time', 'time'], order: [0] },
    { name: 'more of a word', query: 'tea', texts: ['tea and milk', 'tea and tea'], order: [1, 0] },
    {
      name: 'a short text before a long one',
      query: 'tea',
      texts: ['tea with a lot of words around', 'tea'],
      order: [1, 0],
    },
    { name: 'a rare word before a common one', query: 'tea oolong', texts: ['tea', 'tea', 'oolong'], order: [2, 0, 1] },
    { name: 'letters of any script', query: 'чай', texts: ['Чай', 'tea'], order: [0] },
    { name: 'nothing for no words', query: '?!', texts: ['tea'], order: [] },
    { name: 'nothing in nothing', query: 'tea', texts: [], order: [] },
  ])('ranks $name', ({ query, texts, order }) => {
    expect(rank(query, texts).map(({ at }) => at)).toEqual(order)
  })

  it('scores by the formula it names', () => {
    const [first] = rank('tea', ['tea tea milk', 'milk'])
    const length = 0.25 + (0.75 * 3) / 2
    expect(first?.score).toBeCloseTo((Math.log(1 + 1.5 / 1.5) * 2 * 2.2) / (2 + 1.2 * length), 12)
  })
})

describe('what a model writes', () => {
  it.each([
    { name: 'no title', call: ['save_memory', { key: 'a', content: 'x' }], says: '"title" must be a text' },
    {
      name: 'a blank content',
      call: ['save_memory', { key: 'a', title: 'a', content: ' ' }],
      says: '"content" must be',
    },
    { name: 'more than it may', call: save('a', 'x'.repeat(20_001)), says: '1 to 20000 characters' },
    { name: 'half a number', call: search('a', { topK: 1.5 }), says: '"topK" must be a whole number from 1 to 100' },
    { name: 'none at all', call: search('a', { topK: 0 }), says: '"topK" must be a whole number' },
  ] as { name: string; call: [string, object]; says: string }[])(
    'is refused where it is none: $name',
    async ({ call, says: why }) => {
      expect((await play([call])).given[0]).toContain(why)
    },
  )

  it('is described to it, defaults and limits too', () => {
    const memory = new FilesystemMemory({ files: new MemoryFiles(), scope: 's' })
    const told = Object.fromEntries([...memory.tools()].map(({ name, parameters }) => [name, parameters.required]))
    expect(told).toEqual({
      save_memory: ['key', 'title', 'content'],
      search_memory: ['query'],
      list_memories: [],
      delete_memory: ['key'],
    })
    const [save] = [...memory.tools()].map(({ parameters }) => parameters.properties as JsonObject)
    expect(save?.memoryType).toMatchObject({ default: 'fact', maxLength: 50 })
  })
})

it.each([
  { name: 'no files', options: { scope: 'a' }, says: 'files must be' },
  { name: 'a path as files', options: { files: 'folder', scope: 'a' }, says: 'files must be' },
  { name: 'no scope', options: { files: new MemoryFiles() }, says: 'scope must be' },
  { name: 'a time that is none', options: { files: new MemoryFiles(), scope: 'a', time: 5 }, says: 'time must be' },
  { name: 'a misspelt one', options: { files: new MemoryFiles(), scopes: 'a' }, says: 'has no "scopes"' },
])('options of memory are refused where they are none: $name', ({ options, says: why }) => {
  expect(() => new FilesystemMemory(options as never)).toThrow(TypeError)
  expect(() => new FilesystemMemory(options as never)).toThrow(why)
})

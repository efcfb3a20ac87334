import { describe, expect, it } from 'vitest'
import { agentGraph, calls, contents, strict, Talk, user } from '../../../testing/agent.ts'
import { MemoryFiles } from '../../../testing/files.ts'
import { says } from '../../../testing/play.ts'
import {
  agentNode,
  type ChatMessage,
  type ChatModel,
  createRuntime,
  END,
  type Files,
  FilesystemSkills,
  graph,
  modelNode,
  readSkills,
  START,
  ToolInterruptMiddleware,
} from '../../index.ts'

const skillText = (name: string, rest = '') =>
  `---\nname: ${name}\ndescription: Knows about ${name}.\n---\n\n# ${name}\n\nDo it well.\n${rest}`

const files = () =>
  new MemoryFiles({
    'pdf/SKILL.md': skillText('pdf', 'See references/forms.md.'),
    'pdf/references/forms.md': 'Forms are filled in.',
    'pdf/scripts/fill.py': 'print()',
    'office/tables/SKILL.md': skillText('tables'),
    'secret.txt': 'not for anybody',
  })

//#region skills
/** An agent that reads what skills it has when it needs one. */
const skilled = (model: ChatModel, root: Files) => {
  const skills = new FilesystemSkills({ roots: [root] })
  const agent = agentNode('agent', Talk, { model, tools: skills.tools(), system: 'Be kind.' })
  return graph('skilled', Talk, { middleware: [skills] })
    .edge(START, agent)
    .edge(agent, END)
    .check()
}
//#endregion

const LIST =
  'system: Available skills (call load_skill(name) to expand):\n- pdf: Knows about pdf.\n- tables: Knows about tables.'

const load = (name: string) => calls(['load_skill', { name }])
const open = (name: string, path: string) => calls(['read_skill_file', { name, path }])
const results = (said: readonly ChatMessage[]) =>
  said.flatMap(({ role, content }) => (role === 'tool' ? [content] : []))

describe('skills', () => {
  it('are listed to the model, after the prompt and before the conversation, and the list is not stored', async () => {
    const model = strict(['done'])
    const { state } = await createRuntime().run(skilled(model, files()), user('hello'))
    expect(contents(model.requests[0]?.messages ?? [])).toEqual(['system: Be kind.', LIST, 'user: hello'])
    expect(contents(state.messages)).toEqual(['user: hello', 'assistant: done'])
  })

  it('are loaded by name: the instructions, and what else there is', async () => {
    const { state } = await createRuntime().run(skilled(strict([load('pdf'), 'done']), files()), user('fill it in'))
    expect(JSON.parse(results(state.messages)[0] as string)).toEqual({
      name: 'pdf',
      description: 'Knows about pdf.',
      content: '# pdf\n\nDo it well.\nSee references/forms.md.',
      files: ['references/forms.md', 'scripts/fill.py'],
    })
  })

  it('have files that are read one by one', async () => {
    const model = strict([open('pdf', 'references/forms.md'), 'done'])
    const { state } = await createRuntime().run(skilled(model, files()), user('fill it in'))
    expect(results(state.messages)).toEqual(['Forms are filled in.'])
  })

  it.each([
    { path: '../secret.txt' },
    { path: '../tables/SKILL.md' },
    { path: '/etc/passwd' },
    { path: 'references/../../secret.txt' },
    { path: './references/forms.md' },
    { path: 'references//forms.md' },
    { path: 'references\\forms.md' },
    { path: 'C:forms.md' },
    { path: 'NUL' },
    { path: 'a\0b' },
  ])('have no path that leads out of them: $path', async ({ path }) => {
    const root = files()
    const read: string[] = []
    const watched: Files = {
      root: 'w',
      list: (at) => root.list(at),
      read: (at) => {
        read.push(at)
        return root.read(at)
      },
    }
    const { state } = await createRuntime().run(skilled(strict([open('pdf', path), 'done']), watched), user('go'))
    expect(results(state.messages)[0]).toMatch(/^Error: .* is refused as a path/)
    expect(read.filter((at) => !at.endsWith('SKILL.md'))).toEqual([])
  })

  it('that are not there are told, with those that are', async () => {
    const model = strict([load('word'), open('word', 'a.md'), open('pdf', 'a.md'), 'done'])
    const { state } = await createRuntime().run(skilled(model, files()), user('go'))
    expect(results(state.messages)).toEqual([
      'Error: there is no skill "word"; skills are: pdf, tables.',
      'Error: there is no skill "word"; skills are: pdf, tables.',
      'Error: skill "pdf" has no file "a.md"; load_skill lists those it has.',
    ])
  })

  it('H28: are listed to the nodes that are named, and to no others', async () => {
    const skills = new FilesystemSkills({ roots: [files()], nodes: ['think'] })
    const [thinks, talks] = [strict(['hm']), strict(['done'])]
    const think = modelNode('think', Talk, { model: thinks, system: 'Think.' })
    const talk = modelNode('talk', Talk, { model: talks, system: 'Talk.' })
    const g = graph('g', Talk, { middleware: [skills] })
      .edge(START, think)
      .edge(think, talk)
      .edge(talk, END)
      .check()
    const { state } = await createRuntime().run(g, user('hello'))
    expect(contents(thinks.requests[0]?.messages ?? [])).toEqual(['system: Think.', LIST, 'user: hello'])
    expect(contents(talks.requests[0]?.messages ?? [])).toEqual(['system: Talk.', 'user: hello', 'assistant: hm'])
    expect(state.messages).toHaveLength(3)
  })

  it('are read once, when a model is first told of them, and again after that failed', async () => {
    const root = files()
    let [reads, broken] = [0, true]
    const watched: Files = {
      root: 'w',
      list: (at) => root.list(at),
      read: (at) => {
        reads++
        if (broken) throw new Error('the disk is away')
        return root.read(at)
      },
    }
    const g = skilled(strict(['done', 'done']), watched)
    await expect(createRuntime().run(g, user('hello'))).rejects.toMatchObject({ code: 'MIDDLEWARE_FAILED' })
    expect(reads).toBe(1)
    broken = false
    for (const _ of [1, 2]) await createRuntime().run(g, user('hello'))
    expect(reads).toBe(3)
  })

  it('are seen by policies, and may be asked about, like any call', async () => {
    const gate = says('Gate', { 'toolCall.before': { action: 'reject', reason: 'no skills' } })
    const g = skilled(strict([load('pdf'), 'done']), files())
    const { state } = await createRuntime({ policies: [gate] }).run(g, user('go'))
    expect(results(state.messages)).toEqual(['Refused: no skills'])

    const skills = new FilesystemSkills({ roots: [files()] })
    const asks = new ToolInterruptMiddleware({ rules: [{ tool: 'load_skill' }] })
    const model = strict([load('pdf')])
    const asked = agentGraph({ model, tools: skills.tools(), middleware: [skills, asks] })
    expect((await createRuntime().run(asked, user('go'), { thread: 't' })).status).toBe('paused')
  })
})

describe('a catalog', () => {
  const catalogOf = (text: string | null) => readSkills([new MemoryFiles({ 'a/SKILL.md': text }, '/skills')])
  it.each([
    { name: 'no frontmatter', text: '# pdf', says: 'does not begin with a line "---"' },
    { name: 'no line after it', text: '---\nname: a\ndescription: b\n', says: 'without a line "---" after it' },
    { name: 'no name', text: '---\ndescription: b\n---\n', says: 'needs a "name"' },
    { name: 'no description', text: '---\nname: a\n---\n', says: 'needs a "description"' },
    { name: 'an empty name', text: '---\nname: ""\ndescription: b\n---\n', says: 'needs a "name"' },
    { name: 'a key twice', text: '---\nname: a\nname: b\ndescription: c\n---\n', says: 'has "name" a second time' },
    { name: 'a line that is no pair', text: '---\nname: a\nwhat\n---\n', says: 'line 2 is no "key: value"' },
    { name: 'more than a line', text: '---\nname: a\ndescription: >\n  b\n---\n', says: 'line 3 is no "key: value"' },
    { name: 'a long name', text: `---\nname: ${'a'.repeat(65)}\ndescription: b\n---\n`, says: '64 are the most' },
    { name: 'a long description', text: `---\nname: a\ndescription: ${'b'.repeat(1_025)}\n---\n`, says: '1024 are' },
    { name: 'an empty frontmatter', text: '---\n---\nbody', says: 'needs a "name"' },
    { name: 'no UTF-8', text: null, says: 'is no text in UTF-8' },
  ])('H26: is refused with the path of a skill that has $name', async ({ text, says: why }) => {
    const error = await catalogOf(text).catch((error) => error)
    expect(error).toMatchObject({ code: 'SKILL_FORMAT', at: { file: '/skills/a/SKILL.md' } })
    expect(error.message).toContain(why)
    expect(error.message).toContain('/skills/a/SKILL.md')
  })

  it.each([
    { name: 'bare', text: '---\nname: pdf\ndescription: Reads: and writes\n---\nbody' },
    { name: 'with quotes', text: '---\nname: "pdf"\ndescription: \'Reads: and writes\'\n---\nbody' },
    {
      name: 'with other members',
      text: '---\n# note\nname: pdf\n\nlicense: MIT\ndescription: Reads: and writes\n---\nbody',
    },
    {
      name: 'with the line ends of Windows',
      text: '---\r\nname: pdf\r\ndescription: Reads: and writes\r\n---\r\nbody',
    },
    { name: 'with spaces after the lines', text: '--- \nname: pdf \ndescription: Reads: and writes\n---  \n\nbody\n' },
  ])('reads a frontmatter $name', async ({ text }) => {
    const { skills } = await catalogOf(text)
    expect(skills).toMatchObject([{ name: 'pdf', description: 'Reads: and writes', content: 'body', folder: 'a' }])
  })

  it('keeps a line of its text that looks like the end of a frontmatter', async () => {
    const { skills } = await catalogOf('---\nname: a\ndescription: b\n---\none\n---\ntwo')
    expect(skills[0]?.content).toBe('one\n---\ntwo')
  })

  it('takes another reader of frontmatters, and refuses what is none of its members', async () => {
    const root = new MemoryFiles({ 'SKILL.md': '---\n{ "name": "pdf", "description": "a\\n  b" }\n---\nbody' }, '/s')
    const { skills } = await readSkills([root], { frontmatter: JSON.parse })
    expect(skills).toMatchObject([{ name: 'pdf', description: 'a b', folder: '' }])
    for (const frontmatter of [() => [1], () => null, () => JSON.parse('{')]) {
      await expect(readSkills([root], { frontmatter })).rejects.toMatchObject({ code: 'SKILL_FORMAT' })
    }
  })

  it('H27: is refused when two skills have one name; the same one may be found twice', async () => {
    const [one, other] = [
      new MemoryFiles({ 'pdf/SKILL.md': skillText('pdf') }, '/one'),
      new MemoryFiles({ 'x/SKILL.md': skillText('pdf') }, '/other'),
    ]
    const error = await readSkills([one, other]).catch((error) => error)
    expect(error).toMatchObject({ code: 'SKILL_CONFLICT' })
    expect(error.message).toContain('/one/pdf/SKILL.md and /other/x/SKILL.md')
    expect(
      (await readSkills([one, one, new MemoryFiles({ 'pdf/SKILL.md': skillText('pdf') }, '/one')])).skills,
    ).toHaveLength(1)
  })

  it.each([
    { name: 'empty', texts: {} },
    { name: 'without skills', texts: { 'a/README.md': '' } },
    { name: 'with skills where nobody looks', texts: { '.git/SKILL.md': '', 'node_modules/a/SKILL.md': '' } },
    { name: 'too deep', texts: { 'a/b/c/d/e/f/g/h/i/SKILL.md': skillText('a') } },
    { name: 'too large', texts: Object.fromEntries(Array.from({ length: 2_001 }, (_, i) => [`f${i}/x`, ''])) },
  ])('is refused for a root that is $name', async ({ texts }) => {
    const roots = [files(), new MemoryFiles(texts, '/empty')]
    const error = await readSkills(roots).catch((error) => error)
    expect(error).toMatchObject({ code: 'SKILLS_MISSING', at: { file: '/empty' } })
  })

  it('takes a root that is a skill, and what is below a skill as its own', async () => {
    const root = new MemoryFiles({ 'SKILL.md': skillText('pdf'), 'more/SKILL.md': skillText('tables') })
    expect((await readSkills([root])).skills.map(({ name }) => name)).toEqual(['pdf'])
  })

  it('is given to the middleware in place of roots', async () => {
    const model = strict(['done'])
    const skills = new FilesystemSkills({ catalog: await readSkills([files()]) })
    await createRuntime().run(agentGraph({ model, middleware: [skills] }), user('hello'))
    expect(contents(model.requests[0]?.messages ?? [])).toEqual([LIST, 'user: hello'])
  })
})

describe('the options of skills', () => {
  it.each([
    { name: 'nothing', options: {}, error: TypeError, says: 'either roots' },
    { name: 'a folder as a text', options: { roots: ['skills'] }, error: TypeError, says: 'roots must be' },
    { name: 'no roots', options: { roots: [] }, error: RangeError, says: 'roots is empty' },
    {
      name: 'a promise of a catalog',
      options: { catalog: Promise.resolve() },
      error: TypeError,
      says: 'mind its promise',
    },
    {
      name: 'a text for nodes',
      options: { roots: [files()], nodes: 'think' },
      error: TypeError,
      says: 'nodes must be',
    },
    { name: 'no nodes', options: { roots: [files()], nodes: [] }, error: RangeError, says: 'nodes is empty' },
    { name: 'a misspelt one', options: { root: files() }, error: TypeError, says: 'has no "root"' },
  ])('are refused where they are none: $name', ({ options, error, says: why }) => {
    expect(() => new FilesystemSkills(options as never)).toThrow(error)
    expect(() => new FilesystemSkills(options as never)).toThrow(why)
  })
})

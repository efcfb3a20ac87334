import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createAgent, createRuntime, END, graph, messages, modelNode, START, scripted, state } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { folderOf } from '../testing/folder.ts'
import { memoryIn, skillsIn } from './folders.ts'
import { nodeFiles } from './node-files.ts'

describe('the files of a folder', () => {
  it('are listed by name, folders too, and read as text', async () => {
    const root = folderOf({ 'b.txt': 'b', 'a.txt': '\u{feff}ä' })
    mkdirSync(join(root, 'sub'))
    const files = nodeFiles(root)
    expect(files.root).toBe(root)
    expect(await files.list('')).toEqual([
      { name: 'a.txt', kind: 'file' },
      { name: 'b.txt', kind: 'file' },
      { name: 'sub', kind: 'folder' },
    ])
    expect([await files.read('a.txt'), await files.list('sub')]).toEqual(['ä', []])
  })

  it('that are not there are not there, the folder itself included', async () => {
    const files = nodeFiles(join(folderOf({ 'a.txt': '' }), 'none'))
    expect([await files.list(''), await files.read('a.txt'), await files.remove('a.txt')]).toEqual([
      [],
      undefined,
      false,
    ])
    const under = nodeFiles(folderOf({ 'a.txt': '' }))
    expect([
      await under.list('x'),
      await under.read('x/y'),
      await under.read('a.txt/y'),
      await under.list('a.txt'),
    ]).toEqual([[], undefined, undefined, []])
  })

  it('are written in whole, with the folders on their way, and nothing is left beside them', async () => {
    const root = join(folderOf({}), 'new')
    const files = nodeFiles(root)
    await files.write('a/b.json', 'one')
    await files.write('a/b.json', 'two')
    expect(readFileSync(join(root, 'a/b.json'), 'utf8')).toBe('two')
    expect(readdirSync(join(root, 'a'))).toEqual(['b.json'])
    expect([await files.remove('a/b.json'), await files.remove('a/b.json')]).toEqual([true, false])
  })

  it.each([
    { path: '..' },
    { path: '../x' },
    { path: 'a/../../x' },
    { path: '/etc/passwd' },
    { path: 'a//b' },
    { path: './a' },
    { path: 'a\\..\\x' },
    { path: 'a\0' },
    { path: 'con.json' },
  ])('have no path that leads elsewhere: $path', async ({ path }) => {
    const files = nodeFiles(folderOf({ a: '' }))
    for (const use of [
      () => files.list(path),
      () => files.read(path),
      () => files.write(path, ''),
      () => files.remove(path),
    ]) {
      await expect(use()).rejects.toMatchObject({ code: 'PATH_REFUSED' })
    }
  })

  it('are not reached through links, of files and of folders', async () => {
    const outside = folderOf({ 'secret.txt': 'secret' })
    const root = folderOf({ 'a.txt': '' })
    symlinkSync(join(outside, 'secret.txt'), join(root, 'link.txt'))
    symlinkSync(outside, join(root, 'folder'))
    const files = nodeFiles(root)
    expect((await files.list('')).map(({ name }) => name)).toEqual(['a.txt'])
    for (const path of ['link.txt', 'folder/secret.txt', 'folder/new.txt']) {
      for (const use of [() => files.read(path), () => files.write(path, 'x'), () => files.remove(path)]) {
        await expect(use()).rejects.toMatchObject({ code: 'FILE_REFUSED' })
      }
    }
    await expect(files.list('folder')).rejects.toMatchObject({ code: 'FILE_REFUSED' })
    expect(readdirSync(outside)).toEqual(['secret.txt'])
    expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe('secret')
  })

  it('are refused where they are no text, too large, or no files', async () => {
    const root = folderOf({ 'long.txt': 'x'.repeat(11) })
    writeFileSync(join(root, 'latin.txt'), Buffer.from([0xe4]))
    mkdirSync(join(root, 'folder'))
    const files = nodeFiles(root, { maxBytes: 10 })
    for (const path of ['long.txt', 'latin.txt', 'folder']) {
      await expect(files.read(path)).rejects.toMatchObject({ code: 'FILE_REFUSED' })
    }
    await expect(files.remove('folder')).rejects.toMatchObject({ code: 'FILE_REFUSED' })
    expect(existsSync(join(root, 'folder'))).toBe(true)
  })
})

describe('skills in folders', () => {
  it('are listed to models; their frontmatter may be any YAML', async () => {
    const root = folderOf({})
    mkdirSync(join(root, 'pdf'))
    const front = [
      'name: pdf',
      'description: >-',
      '  Reads: forms',
      '  and fills them in.',
      'metadata:',
      '  author: ann',
    ]
    writeFileSync(join(root, 'pdf/SKILL.md'), ['---', ...front, '---', 'Do it well.'].join('\n'))
    const Talk = state({ messages: messages() })
    const model = scripted(['done'])
    const ask = modelNode('ask', Talk, { model })
    const g = graph('g', Talk, { middleware: [skillsIn(root)] })
      .edge(START, ask)
      .edge(ask, END)
      .check()
    await createRuntime().run(g, { messages: [{ role: 'user', content: 'hello' }] })
    expect(model.requests[0]?.messages[0]?.content).toContain('- pdf: Reads: forms and fills them in.')
  })

  it.each([
    { name: 'an alias', front: 'name: &a pdf\ndescription: *a' },
    { name: 'a list', front: '- pdf' },
    { name: 'no YAML', front: 'name: "pdf' },
  ])('are refused with a frontmatter that is $name', async ({ front }) => {
    const root = folderOf({ 'SKILL.md': `---\n${front}\n---\n` })
    await expect(skillsIn([root]).catalog()).rejects.toMatchObject({ code: 'SKILL_FORMAT' })
  })
})

describe('memory in a folder', () => {
  it('is there for whoever opens the folder next, and a file that is damaged is told', async () => {
    const folder = join(folderOf({}), 'kept')
    const play = async (name: string, args: object) => {
      const model = scripted([{ tool_calls: [{ name, arguments: args }] }, 'done'])
      const agent = createAgent({ model, middleware: [memoryIn(folder, { scope: 'user:ann', time: () => 1 })] })
      const { state } = await createRuntime().run(agent, 'hello')
      return JSON.parse(state.messages[2]?.content ?? '')
    }
    await play('save_memory', { key: 'colour', title: 'Colour', content: 'green' })
    writeFileSync(join(folder, 'memories/user/ann/torn.json'), '{"key"')
    expect(readdirSync(join(folder, 'memories/user/ann'))).toEqual(['colour.json', 'torn.json'])
    expect(await play('list_memories', {})).toMatchObject({
      entries: [{ key: 'colour' }],
      skipped: ['memories/user/ann/torn.json'],
    })
    expect(await play('delete_memory', { key: 'torn' })).toMatchObject({ deleted: true })
  })
})

import { cpSync, existsSync, statSync, truncateSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createRuntime, END, graph, messages, node, START, state } from '@sluice/core'
import { expect, it } from 'vitest'
import { folderOf } from '../testing/folder.ts'
import { describeSqlite, openStore } from '../testing/store.ts'

const S = state({ messages: messages() })
const reply = node('reply', S, (s) => ({
  messages: [{ role: 'assistant' as const, content: `${s.messages.length} ${'blah '.repeat(60)}` }],
}))
const chat = graph('chat', S).edge(START, reply).edge(reply, END).check()
const say = (i: number) => ({ messages: [{ role: 'user', content: `question ${i} ${'why '.repeat(60)}` }] }) as const

describeSqlite('threads in a SQLite file', () => {
  it('E26: begin in folders that are made on the way', async () => {
    const path = join(folderOf({}), 'made/on/the/way/threads.db')
    await createRuntime({ store: openStore(path) }).run(chat, say(0), { thread: 't' })
    expect(existsSync(path)).toBe(true)
  })

  it('E28: of which the last write was torn off go on from the one before it', async () => {
    const path = join(folderOf({}), 'threads.db')
    const runtime = createRuntime({ store: openStore(path) })
    await runtime.run(chat, say(0), { thread: 't' })
    const copy = join(folderOf({}), 'copy')
    cpSync(dirname(path), copy, { recursive: true })
    const wal = join(copy, 'threads.db-wal')
    truncateSync(wal, statSync(wal).size - 100)
    // With the write went the lease that it gave back; a minute later that has run out.
    const later = openStore(join(copy, 'threads.db'), { now: () => Date.now() + 60_000 })
    const again = createRuntime({ store: later })
    expect((await again.history('t')).at(-1)?.type).toBe('step')
    const { state } = await again.continue(chat, 't')
    expect(state.messages).toHaveLength(2)
  })

  it('E32: of 150 turns of a conversation take less than 1.5 MB, and are read back whole', async () => {
    const path = join(folderOf({}), 'threads.db')
    const store = openStore(path, { synchronous: 'NORMAL' })
    const runtime = createRuntime({ store })
    for (let i = 0; i < 150; i++) await runtime.run(chat, say(i), { thread: 't' })
    const { state } = await runtime.stateAt(chat, 't')
    await store.close()
    expect(state?.messages).toHaveLength(300)
    expect(statSync(path).size).toBeLessThan(1_500_000)
    expect((await createRuntime({ store: openStore(path) }).stateAt(chat, 't')).state).toEqual(state)
  })
})

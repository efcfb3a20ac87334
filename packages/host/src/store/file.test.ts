import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { folderOf } from '../testing/folder.ts'
import { builtStore } from '../testing/runtime.ts'
import { codeOf, describeSqlite, lineOf, openRaw, openStore, runStore, storePath } from '../testing/store.ts'

const T = lineOf('t')

/** A store with 100 records, closed. */
async function filled(path: string): Promise<void> {
  const store = openStore(path)
  const lease = await store.acquire(T, { create: true })
  const records = Array.from({ length: 100 }, () => JSON.stringify('x'.repeat(1_000)))
  await store.append(lease, { seq: 1, records, standing: { graph: 'g', asks: '[]', at: 1 }, release: true })
  await store.close()
}

/** Everything in a folder: names and bytes. */
const contentOf = (folder: string) =>
  readdirSync(folder).map((name) => {
    const path = join(folder, name)
    return [name, statSync(path).isDirectory() ? 'folder' : readFileSync(path).toString('base64')]
  })

describeSqlite('what is at the path and is no store (E27)', () => {
  it.each<{ name: string; code: string; make: (path: string) => unknown }>([
    { name: 'a folder', code: 'STORE_FOREIGN', make: (path) => mkdirSync(path) },
    { name: 'a text', code: 'STORE_FOREIGN', make: (path) => writeFileSync(path, '{"header":true}\n'.repeat(500)) },
    {
      name: 'a file that ends in its header',
      code: 'STORE_FOREIGN',
      make: (path) => writeFileSync(path, 'SQLite format 3\0'),
    },
    {
      name: 'a database of another program',
      code: 'STORE_FOREIGN',
      make: (path) => openRaw(path).exec('create table t (x)'),
    },
    {
      name: 'a database that says which program it is of',
      code: 'STORE_FOREIGN',
      make: (path) => openRaw(path).exec('create table line (id); pragma application_id = 7; pragma user_version = 1'),
    },
    {
      name: 'a database that another program left with a write-ahead log',
      code: 'STORE_FOREIGN',
      make: (path) => openRaw(path).exec('pragma journal_mode = wal; create table t (x); insert into t values (1)'),
    },
    {
      name: 'a store of a later release',
      code: 'STORE_NEWER',
      make: async (path) => {
        await filled(path)
        openRaw(path).exec('pragma journal_mode = delete; pragma user_version = 2')
      },
    },
  ])('$name is refused, and left as it is', async ({ code, make }) => {
    const path = storePath()
    await make(path)
    const before = contentOf(dirname(path))
    expect(await codeOf(() => openStore(path))).toBe(code)
    expect(contentOf(dirname(path))).toEqual(before)
  })

  it('is named, with what to do', async () => {
    const path = storePath()
    writeFileSync(path, 'hello')
    expect(() => openStore(path)).toThrow(
      expect.objectContaining({
        message: `${path} is no SQLite database, and was left as it is. Choose another path for the store.`,
        at: { file: path },
      }),
    )
  })

  it('an empty file becomes a store', async () => {
    const path = storePath()
    writeFileSync(path, '')
    await filled(path)
    expect(await openStore(path).load(T)).toMatchObject({ head: 100 })
  })

  it('a folder that cannot be made is a failure that keeps its cause', async () => {
    const file = join(folderOf({ file: '' }), 'file')
    expect(() => openStore(join(file, 'threads.db'))).toThrow(
      expect.objectContaining({ code: 'STORE_FAILED', cause: expect.objectContaining({ code: expect.any(String) }) }),
    )
  })
})

describeSqlite('a damaged store (E29)', () => {
  it.each<{ name: string; damage: (path: string) => void }>([
    {
      name: 'overwritten',
      damage: (path) =>
        writeFileSync(path, Buffer.concat([readFileSync(path).subarray(0, 4_096), Buffer.alloc(90_000, 0xaa)])),
    },
    { name: 'cut off', damage: (path) => truncateSync(path, 8_192) },
  ])('that was $name is called that', async ({ damage }) => {
    const path = storePath()
    await filled(path)
    damage(path)
    expect(
      await codeOf(() => {
        const store = openStore(path)
        return store.load(T)
      }),
    ).toBe('STORE_CORRUPT')
  })
})

/** Opens the store as a user who may not do everything: root becomes nobody, when everything is loaded. */
const AS_NOBODY = `
const [path, elsewhere] = process.argv.slice(2)
sqliteStore(elsewhere).close()
if (process.getuid() === 0) {
  process.setgid(65534)
  process.setuid(65534)
}
try {
  sqliteStore(path).close()
  console.log('opened')
} catch (error) {
  console.log(error.code)
}
`

describeSqlite('a store that may not be written', () => {
  const module = builtStore()

  it.skipIf(process.platform === 'win32').each([
    { name: 'whose file may not be', file: 0o444, folder: 0o777, opens: 'STORE_READ_ONLY' },
    { name: 'whose file may not even be read', file: 0o200, folder: 0o777, opens: 'STORE_READ_ONLY' },
    { name: 'whose folder may not be', file: 0o666, folder: 0o555, opens: 'STORE_READ_ONLY' },
    { name: 'that cannot be made in its folder', file: undefined, folder: 0o555, opens: 'STORE_READ_ONLY' },
    { name: 'where both may be', file: 0o666, folder: 0o777, opens: 'opened' },
  ])('$name: $opens', async ({ file, folder, opens }) => {
    const path = storePath()
    if (file !== undefined) {
      await filled(path)
      chmodSync(path, file)
    }
    chmodSync(dirname(path), folder)
    const child = runStore(module, AS_NOBODY, [path, storePath()])
    expect(await child.rest()).toEqual([opens])
    chmodSync(dirname(path), 0o700)
    expect(readdirSync(dirname(path))).toEqual(file === undefined ? [] : ['threads.db'])
  })
})

/** Appends until that fails, and says how many records were written and what was wrong. */
const UNTIL_FULL = `
let written = 0
try {
  const store = sqliteStore(process.argv[2])
  const lease = await store.acquire({ thread: 't', branch: 'main' }, { create: true })
  for (;;) {
    const text = JSON.stringify('x'.repeat(2_000))
    const more = written % 3 === 2 ? { snapshot: true, beside: [['k' + written, text]] } : {}
    await store.append(lease, { seq: written + 1, records: [text], ...more })
    written++
  }
} catch (error) {
  console.log(written + ' ' + error.code)
}
`

describeSqlite('a store that cannot grow', () => {
  const module = builtStore()
  /** In blocks of 512 or of 1,024 bytes, as the shell pleases. */
  const limited = (blocks: number, path: string) =>
    runStore(module, UNTIL_FULL, [path], ['sh', '-c', `ulimit -f ${blocks} && exec "$0" "$@"`, process.execPath])

  it.skipIf(process.platform === 'win32')(
    'says so, keeps what it acknowledged, and goes on when there is room',
    async () => {
      const path = storePath()
      const [said = ''] = await limited(500, path).rest()
      const written = Number.parseInt(said, 10)
      expect(said).toBe(`${written} STORE_FULL`)
      expect(written).toBeGreaterThan(5)
      const store = openStore(path)
      expect(await store.read(T)).toHaveLength(written)
      await store.append(await store.acquire(T), { seq: written + 1, records: ['1'] })
      expect(openRaw(path).prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' })
    },
  )

  it.skipIf(process.platform === 'win32').each([8, 24, 48])(
    'is not half made where there is no room to begin with (%i blocks)',
    async (blocks) => {
      const path = storePath()
      expect(await limited(blocks, path).rest()).toEqual(['0 STORE_FULL'])
      await filled(path)
      expect(await openStore(path).load(T)).toMatchObject({ head: 100 })
    },
  )
})

describeSqlite('a store that another process has locked', () => {
  it('is waited for, and then refused', async () => {
    const path = storePath()
    const store = openStore(path, { busyTimeoutMs: 1 })
    const lease = await store.acquire(T, { create: true })
    const other = openRaw(path)
    other.exec('begin immediate')
    expect(await codeOf(() => store.append(lease, { seq: 1, records: ['1'] }))).toBe('STORE_BUSY')
    expect(await codeOf(() => store.acquire(lineOf('u'), { create: true }))).toBe('STORE_BUSY')
    expect(await store.load(T)).toBe(undefined)
    other.exec('rollback')
    await store.append(lease, { seq: 1, records: ['1'] })
  })
})

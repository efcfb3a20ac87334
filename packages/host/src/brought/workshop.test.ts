import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { thisProcess } from '../store/owner.ts'
import { folderOf } from '../testing/folder.ts'
import { interpreterIn } from './code.ts'
import { Workshop } from './workshop.ts'

const folderNameOf = (owner: unknown) =>
  `sluice-code-${Buffer.from(JSON.stringify(owner)).toString('base64url')}-Ab12Cd`

/** The number of a process that has ended. */
const endedPid = () => spawnSync(process.execPath, ['-e', '']).pid

describe('the folder of code of requests', () => {
  it('is open to nobody else, and so is all that lies in it', async () => {
    const place = folderOf({})
    const workshop = await Workshop.open({ folder: place })
    const files = [{ path: 'a/b', content: 'c' }]
    const { close } = await workshop.bring({ tools: [{ name: 'it', source: '#!/bin/sh\n' }], files })
    const found = readdirSync(place, { recursive: true, encoding: 'utf8' })
    const modes = found.map((path) => statSync(join(place, path))).map((at) => [at.isFile(), at.mode & 0o777])
    expect(new Set(modes.map(String))).toEqual(new Set([`true,${0o600}`, `false,${0o700}`]))
    await close()
    await close()
    expect(readdirSync(join(place, found[0] as string))).toEqual([])
    await workshop.close()
    expect(readdirSync(place)).toEqual([])
  })

  it('is removed at the next start where its process is gone, and left where that may be alive', async () => {
    const here = thisProcess()
    const gone = folderNameOf({ ...here, pid: endedPid() })
    const kept = {
      ours: folderNameOf(here),
      elsewhere: folderNameOf({ ...here, host: 'another', pid: endedPid() }),
      container: folderNameOf({ ...here, space: 'pid:[1]', pid: endedPid() }),
      nobody: folderNameOf(null),
      strange: folderNameOf({ ...here, pid: -1 }),
      other: 'sluice-code-x',
      foreign: 'somebody-else',
    }
    const place = folderOf({})
    for (const name of [gone, ...Object.values(kept)]) mkdirSync(join(place, name, 'run-1'), { recursive: true })
    const workshop = await Workshop.open({ folder: place })
    expect(existsSync(join(place, gone))).toBe(false)
    for (const name of Object.values(kept)) expect([name, existsSync(join(place, name, 'run-1'))]).toEqual([name, true])
    await workshop.close()
  })

  it('is not followed where it is a link', async () => {
    const [place, kept] = [folderOf({}), folderOf({ file: 'x' })]
    symlinkSync(kept, join(place, folderNameOf({ ...thisProcess(), pid: endedPid() })))
    await (await Workshop.open({ folder: place })).close()
    expect(existsSync(join(kept, 'file'))).toBe(true)
  })

  it('is one for each server, also within one process', async () => {
    const place = folderOf({})
    const [one, two] = [await Workshop.open({ folder: place }), await Workshop.open({ folder: place })]
    await one.close()
    expect(readdirSync(place)).toHaveLength(1)
    await two.close()
  })

  it('is made anew under another name where it was tidied away, once for all who need it', async () => {
    const place = folderOf({})
    const workshop = await Workshop.open({ folder: place })
    const [old = ''] = readdirSync(place)
    rmSync(join(place, old), { recursive: true })
    const all = await Promise.all([1, 2, 3].map(() => workshop.bring({ files: [{ path: 'a', content: 'b' }] })))
    const homes = readdirSync(place)
    expect(homes).toHaveLength(1)
    expect(homes).not.toEqual([old])
    expect(readdirSync(join(place, homes[0] as string))).toHaveLength(3)
    for (const { close } of all) await close()
    await workshop.close()
    expect(readdirSync(place)).toEqual([])
  })

  it('has to be there', async () => {
    const refused = Workshop.open({ folder: join(folderOf({}), 'none') })
    await expect(refused).rejects.toMatchObject({ code: 'CODE_FOLDER' })
    await expect(Workshop.open({ limits: { maxTools: -1 } })).rejects.toMatchObject({ code: 'LIMIT_INVALID' })
  })
})

describe('the first line of a program', () => {
  it.each([
    { line: '#!/bin/sh', runs: ['/bin/sh'] },
    { line: '#! /usr/bin/env node\nx', runs: ['/usr/bin/env', 'node'] },
    { line: '#!/usr/bin/env -S node --no-warnings \r\nx', runs: ['/usr/bin/env', '-S node --no-warnings'] },
    { line: '#!sh', runs: undefined },
    { line: '#!', runs: undefined },
    { line: ' #!/bin/sh', runs: undefined },
    { line: '#!/bin/sh a\0b', runs: undefined },
    { line: '#!/bin/sh a\rb', runs: undefined },
    { line: '#!/', runs: undefined },
    { line: '#!/bin/sh \t -e\t', runs: ['/bin/sh', '-e'] },
    { line: `#!/bin/sh ${'a'.repeat(245)}\n`, runs: ['/bin/sh', 'a'.repeat(245)] },
    { line: `#!/bin/sh ${'a'.repeat(246)}\n`, runs: undefined },
  ])('says what runs it, as the kernel reads it: $line', ({ line, runs }) => {
    expect(interpreterIn(line)).toEqual(runs)
  })

  it('is not read on where it has no end, however much there is of it', () => {
    const blanks = ' '.repeat(256 * 1024)
    for (const line of [`#!/bin/sh${blanks}`, `#!/bin/sh${blanks}\n`, `#!/bin/sh a${blanks}b\n`])
      expect(interpreterIn(line)).toBe(undefined)
  })
})

import { describe, expect, it } from 'vitest'
import { faultsOf } from './rooms.mjs'

const exportsOf = (owner: string) => (owner === 'plugin' ? ['.', './testing'] : ['.'])
const faults = (path: string, text: string) => faultsOf(path, text, exportsOf)

describe('an import that points up the list', () => {
  it.each([
    { name: 'a room uses itself', path: 'core/src/run/run.ts', text: `import { a } from './loop.ts'` },
    { name: 'a room uses one before it', path: 'core/src/run/run.ts', text: `import { a } from '../seams/table.ts'` },
    { name: 'a middleware uses its siblings', path: 'core/src/middleware/pii/index.ts', text: `import '../hooks.ts'` },
    {
      name: 'the index of core uses any room',
      path: 'core/src/index.ts',
      text: `export { a } from './agent/agent.ts'`,
    },
    {
      name: 'core uses schema types',
      path: 'core/src/tools/tool.ts',
      text: `import type { A } from '@standard-schema/spec'`,
    },
    { name: 'flow uses core', path: 'flow/src/load.ts', text: `import { a } from '@sluice/core'` },
    { name: 'flow uses an npm package', path: 'flow/src/load.ts', text: `import { parse } from 'yaml'` },
    { name: 'rooms outside core are free', path: 'host/src/a/a.ts', text: `import { b } from '../b/b.ts'` },
    { name: 'plugin uses Node', path: 'plugin/src/serve.ts', text: `import { stdin } from 'node:process'` },
    { name: 'an entry that is exported', path: 'host/src/a.ts', text: `import { a } from '@sluice/plugin/testing'` },
    {
      name: 'the command uses everything',
      path: 'cli/src/main.ts',
      text: `import '@sluice/host'\nimport '@sluice/server'`,
    },
    {
      name: 'a test uses anything',
      path: 'core/src/json/json.test.ts',
      text: `import '../run/run.ts'\nimport 'node:fs'`,
    },
    { name: 'an import in a comment', path: 'core/src/json/json.ts', text: `// import { a } from '../run/run.ts'` },
  ])('is fine: $name', ({ path, text }) => expect(faults(`packages/${path}`, text)).toEqual([]))
})

describe('an import that points down the list', () => {
  it.each([
    {
      name: 'a room uses a later one',
      path: 'core/src/seams/gate.ts',
      text: `import { a } from '../run/run.ts'`,
      rule: 'seams stands before run and may not import it',
    },
    {
      name: 'for a type only',
      path: 'core/src/errors/errors.ts',
      text: `import type { A } from '../json/json.ts'`,
      rule: 'errors stands before json',
    },
    {
      name: 'in a re-export',
      path: 'core/src/errors/errors.ts',
      text: `export { a } from '../json/json.ts'`,
      rule: 'errors stands before json',
    },
    {
      name: 'at run time',
      path: 'core/src/errors/errors.ts',
      text: `const a = await import('../json/json.ts')`,
      rule: 'errors stands before json',
    },
    {
      name: 'inside a type',
      path: 'core/src/errors/errors.ts',
      text: `type A = import('../json/json.ts').A`,
      rule: 'errors stands before json',
    },
    {
      name: 'a room uses the index',
      path: 'core/src/run/run.ts',
      text: `import { a } from '../index.ts'`,
      rule: 'a room may not import the index',
    },
    {
      name: 'a room uses what is no room',
      path: 'core/src/run/run.ts',
      text: `import { a } from '../utils/a.ts'`,
      rule: '"utils" is no room of core',
    },
    {
      name: 'core uses another package',
      path: 'core/src/run/run.ts',
      text: `import { a } from '@sluice/flow'`,
      rule: 'core may import no other package, not flow',
    },
    {
      name: 'core uses Node',
      path: 'core/src/run/run.ts',
      text: `import { a } from 'node:fs'`,
      rule: "core may not use Node's modules",
    },
    {
      name: 'core uses Node under an old name',
      path: 'core/src/run/run.ts',
      text: `import { a } from 'fs/promises'`,
      rule: "core may not use Node's modules",
    },
    {
      name: 'core uses an npm package',
      path: 'core/src/run/run.ts',
      text: `import { z } from 'zod'`,
      rule: 'core may depend on @standard-schema/spec, not zod',
    },
    {
      name: 'flow uses Node',
      path: 'flow/src/load.ts',
      text: `import { a } from 'node:path'`,
      rule: "flow may not use Node's modules",
    },
    {
      name: 'flow uses host',
      path: 'flow/src/load.ts',
      text: `import { a } from '@sluice/host'`,
      rule: 'flow may import core, not host',
    },
    {
      name: 'plugin uses an npm package',
      path: 'plugin/src/serve.ts',
      text: `import { a } from 'zod'`,
      rule: 'plugin may depend on no npm package, not zod',
    },
    {
      name: 'server uses plugin',
      path: 'server/src/app.ts',
      text: `import { a } from '@sluice/plugin'`,
      rule: 'server may import core, flow, host, not plugin',
    },
    {
      name: 'a file behind another package',
      path: 'host/src/a.ts',
      text: `import { a } from '@sluice/core/src/run/run.ts'`,
      rule: '"./src/run/run.ts" is not in the exports of packages/core',
    },
    {
      name: 'another package by path',
      path: 'flow/src/load.ts',
      text: `import { a } from '../../core/src/index.ts'`,
      rule: 'leaves packages/flow',
    },
    {
      name: 'its own package by name',
      path: 'flow/src/load.ts',
      text: `import { a } from '@sluice/flow'`,
      rule: 'a package imports its own files by relative path',
    },
  ])('is refused with file, import and rule: $name', ({ path, text, rule }) => {
    const found = faults(`packages/${path}`, text)
    expect(found).toHaveLength(1)
    expect(found[0]).toContain(`packages/${path} imports "`)
    expect(found[0]).toContain(rule)
  })
})

describe('a file that stands nowhere', () => {
  it('is refused in core', () => {
    expect(faults('packages/core/src/utils/a.ts', '')[0]).toContain('"utils" is no room of core')
    expect(faults('packages/core/src/misc.ts', '')[0]).toContain('"misc.ts" is no room of core')
  })
  it('is refused in a package that is not in the table', () => {
    expect(faults('packages/studio/src/a.ts', '')[0]).toContain('package "studio" is not in the table')
  })
})

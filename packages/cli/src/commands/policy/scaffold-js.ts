import type { Scaffold, Scaffolded } from './scaffold.ts'
import { manifestOf, namedBy, wordsOf } from './scaffold-parts.ts'

export function javascript(scaffold: Scaffold): Scaffolded {
  const { name } = scaffold
  return {
    files: {
      [`${name}.json`]: manifestOf(scaffold),
      [`${name}.mjs`]: programOf(scaffold, { typed: false }),
      [`${name}.test.mjs`]: testOf(scaffold, { typed: false }),
    },
    test: `node --test ${name}/${name}.test.mjs`,
  }
}

/** The same, compiled: `.mts` becomes the `.mjs` that the host starts. */
export function typescript(scaffold: Scaffold): Scaffolded {
  const { name } = scaffold
  return {
    files: {
      [`${name}.json`]: manifestOf(scaffold),
      [`${name}.mts`]: programOf(scaffold, { typed: true }),
      [`${name}.test.mts`]: testOf(scaffold, { typed: true }),
      'package.json': PACKAGE(name),
      'tsconfig.json': TSCONFIG,
    },
    build: `cd ${name} && npm install && npm run build`,
    test: `cd ${name} && npm test`,
  }
}

interface Typed {
  readonly typed: boolean
}

function programOf(scaffold: Scaffold, { typed }: Typed): string {
  const { type, seam, half, admits } = scaffold
  const { yes, no } = wordsOf(scaffold)
  const rule = `const refused = ${typed ? '(ctx.component.refuse ?? []) as readonly string[]' : 'ctx.component.refuse ?? []'}
        const name = subject.${namedBy(seam)}${typed ? " ?? ''" : ''}
        if (refused.includes(name)) return { action: '${no}', reason: \`\${name} is on the list of what is refused\` }
        `
  const shown = half === 'before' ? 'input' : 'outcome'
  const params = no === undefined ? '' : `{ subject }, ctx`
  return `${typed ? "import type { Handlers } from '@sluice/plugin'\n\n" : ''}export const handlers = {
  ${type}: {
    ${seam}: {
      // Also shown is \`${shown}\`. May answer: ${admits.join(', ')}.
      ${half}(${params}) {
        ${no === undefined ? '' : rule}return { action: '${yes}' }
      },
    },
    // Runs on \`sluice policy check\`; throw what is wrong with the settings, or with what this policy needs.
    selfTest() {},
  },
}${typed ? ' satisfies Handlers' : ''}

// The host gives plugins a global \`serve\`; a test does not.
${typed ? 'const { serve } = globalThis as { serve?: (handlers: Handlers) => void }\nserve' : 'globalThis.serve'}?.(handlers)
`
}

function testOf(scaffold: Scaffold, { typed }: Typed): string {
  const { name, type, seam, half } = scaffold
  const { yes, no } = wordsOf(scaffold)
  const any = typed ? ' as never' : ''
  const subject = `{ ${namedBy(seam)}: name }`
  const decide = `const decide = (name${typed ? ': string' : ''}, refuse${typed ? ': readonly string[]' : ''}) =>
  handlers.${type}.${seam}.${half}(${no === undefined ? '' : `{ subject: ${subject} }${any}, { component: { refuse } }${any}`})`
  const refuses = `
test('what is on the list is refused', () => {
  assert.equal(decide('this', ['this']).action, '${no}')
})
`
  return `import assert from 'node:assert/strict'
import test from 'node:test'
import { handlers } from './${name}.mjs'

${decide}

test('what is not on the list goes on', () => {
  assert.deepEqual(decide('that', ['this']), { action: '${yes}' })
})
${no === undefined ? '' : refuses}`
}

const PACKAGE = (name: string) =>
  `${JSON.stringify(
    {
      name,
      private: true,
      type: 'module',
      scripts: { build: 'tsc', test: `tsc && node --test ${name}.test.mjs` },
      devDependencies: { '@sluice/plugin': '^0.1.0', '@types/node': '>=20', typescript: '>=5.6' },
    },
    null,
    2,
  )}\n`

const TSCONFIG = `${JSON.stringify(
  {
    compilerOptions: {
      target: 'ES2022',
      module: 'NodeNext',
      strict: true,
      skipLibCheck: true,
      types: ['node'],
    },
    include: ['*.mts'],
  },
  null,
  2,
)}\n`

import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defaultExclude, defineConfig } from 'vitest/config'

const root = new URL('./packages/', import.meta.url)

/** Tests see sources, never dist: one exact alias for each entry in a package's `exports`. */
function sourceAliases(folder: string) {
  const { name, exports } = JSON.parse(readFileSync(new URL(`${folder}/package.json`, root), 'utf8'))
  return Object.entries<{ default: string }>(exports).map(([entry, target]) => ({
    find: new RegExp(`^${name}${entry.slice(1)}$`),
    replacement: fileURLToPath(
      new URL(folder + target.default.replace('./dist', '/src').replace(/\.js$/, '.ts'), root),
    ),
  }))
}

/** Tests that load a package anew, or put something in its place. */
const ANEW = ['packages/core/src/run/runtime.test.ts', 'packages/flow/src/load-lazily.test.ts']
/** What touches no platform leaves nothing behind: these tests share workers, in which packages are loaded once. */
const SHARED = ['packages/{core,flow,plugin}/src/**/*.test.ts']
const ALONE = ['packages/!(core|flow|plugin)/src/**/*.test.ts', '{examples,scripts,tests}/**/*.test.ts', ...ANEW]

export default defineConfig({
  resolve: {
    alias: readdirSync(root, { withFileTypes: true }).flatMap((at) => (at.isDirectory() ? sourceAliases(at.name) : [])),
  },
  test: {
    projects: [
      {
        extends: true,
        test: { name: 'shared', isolate: false, include: SHARED, exclude: [...defaultExclude, ...ANEW] },
      },
      { extends: true, test: { name: 'alone', include: ALONE } },
    ],
    testTimeout: 30_000,
    coverage: { provider: 'v8', include: ['packages/*/src/**/*.ts'], exclude: ['**/*.test.ts', '**/*.test-d.ts'] },
  },
})

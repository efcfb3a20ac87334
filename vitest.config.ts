import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

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

export default defineConfig({
  resolve: {
    alias: readdirSync(root, { withFileTypes: true }).flatMap((at) => (at.isDirectory() ? sourceAliases(at.name) : [])),
  },
  test: {
    include: ['packages/**/src/**/*.test.ts', 'examples/**/*.test.ts', 'scripts/**/*.test.ts', 'tests/**/*.test.ts'],
    testTimeout: 30_000,
    coverage: { provider: 'v8', include: ['packages/*/src/**/*.ts'], exclude: ['**/*.test.ts', '**/*.test-d.ts'] },
  },
})

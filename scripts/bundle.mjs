// Bundles the command: one file for what every call needs, a chunk for each part that is imported when it is used. A module
// costs a third of a millisecond by being a file of its own.
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const at = (path) => fileURLToPath(new URL(`../packages/${path}`, import.meta.url))

/**
 * The bundle is split by file, and an index pulls along all that it lists. So what is imported from the host comes from its own
 * file: a run without a thread loads nothing of the store. Commands for operators use much of it, and none that runs loads them.
 */
const HOST_FILES = [
  { importer: 'cli/dist/store/open.js', file: 'store/sqlite.js' },
  { importer: 'cli/dist/commands/policy/', file: 'index.js' },
  { importer: 'cli/dist/commands/serve.js', file: 'index.js' },
  { importer: 'server/dist/', file: 'index.js' },
]
const pastTheIndex = {
  name: 'past the index of the host',
  setup({ onResolve }) {
    onResolve({ filter: /^@sluice\/host$/ }, ({ importer }) => {
      const found = HOST_FILES.find((each) => importer.startsWith(at(each.importer)))
      const file = found?.file ?? 'machine/host.js'
      return { path: at(`host/dist/${file}`), sideEffects: false }
    })
  },
}

rmSync(at('cli/dist/bundle'), { recursive: true, force: true })
await build({
  entryPoints: { sluice: at('cli/dist/main.js') },
  outdir: at('cli/dist/bundle'),
  plugins: [pastTheIndex],
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  logLevel: 'warning',
  // CommonJS packages inside an ES bundle ask for Node's own modules with require.
  banner: {
    js: "import { createRequire as requireOfBundle } from 'node:module'; const require = requireOfBundle(import.meta.url);",
  },
})

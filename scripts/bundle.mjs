// Bundles the command: one file for what every call needs, a chunk for each part that is imported when it is used. A module
// costs a third of a millisecond by being a file of its own.
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const at = (path) => fileURLToPath(new URL(`../packages/cli/${path}`, import.meta.url))

rmSync(at('dist/bundle'), { recursive: true, force: true })
await build({
  entryPoints: { sluice: at('dist/main.js') },
  outdir: at('dist/bundle'),
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  logLevel: 'warning',
  // CommonJS packages inside an ES bundle ask for Node's own modules with require.
  banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
})

// Takes away what the build and the tests leave behind.
import { readdirSync, rmSync } from 'node:fs'

const root = new URL('../', import.meta.url)
const packages = readdirSync(new URL('packages/', root), { withFileTypes: true }).filter((at) => at.isDirectory())
const left = [...packages.map(({ name }) => `packages/${name}/dist/`), 'coverage/']

for (const path of left) rmSync(new URL(path, root), { recursive: true, force: true })

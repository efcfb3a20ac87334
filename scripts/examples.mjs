// Runs each folder of examples/ that checks itself, one after another, and stops at the first that is wrong.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const examples = fileURLToPath(new URL('../examples/', import.meta.url))
const folders = existsSync(examples)
  ? readdirSync(examples, { withFileTypes: true }).filter((at) => at.isDirectory())
  : []
let ran = 0

for (const { name } of folders.sort((a, b) => (a.name < b.name ? -1 : 1))) {
  const cwd = join(examples, name)
  const file = ['check.mjs', 'demo.mjs'].find((file) => existsSync(join(cwd, file)))
  if (file === undefined) {
    console.log(`skip  ${name}: neither check.mjs nor demo.mjs`)
    continue
  }
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [file], { cwd, encoding: 'utf8' })
  if (status !== 0) {
    process.stderr.write(`${stdout}${stderr}wrong ${name}/${file}: ${signal ?? `exit code ${status}`}\n`)
    process.exit(1)
  }
  console.log(`right ${name}/${file}`)
  ran += 1
}
console.log(`${ran} examples are right`)

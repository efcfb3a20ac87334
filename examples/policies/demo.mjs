// Runs two flows past five policies and tells what each scene shows. Needs no key and no network.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { argumentsOf, command, scenes } from './scenes.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))
const quoted = (word) => (/^[\w./=-]+$/.test(word) ? word : `'${word}'`)

for (const scene of scenes) {
  const words = argumentsOf(scene)
  console.error(`\n── ${scene.title}\n   npx sluice ${words.map(quoted).join(' ')}\n`)
  const child = spawn(process.execPath, [command, ...words], { cwd: root, stdio: 'inherit' })
  const code = await new Promise((resolve) => child.on('exit', resolve))
  if (code !== (scene.expectExit ?? 0)) {
    console.error(`this scene ended with exit code ${code}`)
    process.exit(1)
  }
}

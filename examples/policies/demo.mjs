// Runs two flows past five policies and tells what each scene shows. Needs no key and no network.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { scenes } from './scenes.mjs'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))

for (const { title, flow, input, config, flags = [], expectExit = 0 } of scenes) {
  const settings = Object.entries(config).flatMap(([type, value]) => [
    '--plugin-config',
    `${type}=${JSON.stringify(value)}`,
  ])
  const args = [
    at('../../packages/cli/bin/sluice.js'),
    'run',
    at(flow),
    '--tools-dir',
    at('tools'),
    '--plugin',
    at('policies.json'),
  ]
  console.log(`\n── ${title}`)
  console.log(
    `   sluice run ${[flow, ...flags].join(' ')} --plugin policies.json ${settings.map((word) => (word.startsWith('--') ? word : `'${word}'`)).join(' ')}\n`,
  )
  const child = spawn(process.execPath, [...args, ...settings, ...flags, '--input', JSON.stringify(input)], {
    stdio: 'inherit',
  })
  const code = await new Promise((resolve) => child.on('exit', resolve))
  if (code !== expectExit) {
    console.error(`this scene ended with exit code ${code}; it should have been ${expectExit}`)
    process.exit(1)
  }
}

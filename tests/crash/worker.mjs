// node worker.mjs <store file> <thread> <effects file> [--once | --until paused]
// Takes the thread to its end, wherever it stands; or one run further; or to its first pause.
import { sqliteStore } from '@sluice/host'
import { finish, scenario, step } from './scenario.mjs'

const [storeFile, thread, effects, mode] = process.argv.slice(2)
const store = sqliteStore(storeFile)
const made = scenario(effects, store)
process.stdout.write('ready\n')
process.stdout.write(`${JSON.stringify(mode === undefined ? await finish(made, thread, effects) : await once())}\n`)
await store.close()

/** One run; a pause is where the first one stands anyway. */
async function once() {
  try {
    return { status: (await step(made, thread, effects)).status }
  } catch ({ code }) {
    return { code }
  }
}

// node worker.mjs <store file> <thread> <effects file>: takes the thread to its end, wherever it stands.
import { sqliteStore } from '@sluice/host'
import { finish, scenario } from './scenario.mjs'

const [storeFile, thread, effects] = process.argv.slice(2)
const store = sqliteStore(storeFile)
const made = scenario(effects, store)
process.stdout.write('ready\n')
const state = await finish(made, thread, effects)
await store.close()
process.stdout.write(`${JSON.stringify(state)}\n`)

// npm run crash -- [--times 5000] [--seed 1]
import { parseArgs } from 'node:util'
import { killAtRandom } from './kill.mjs'

const { values } = parseArgs({ options: { times: { type: 'string', default: '5000' }, seed: { type: 'string' } } })
const seed = Number(values.seed ?? Date.now() % 2 ** 32)
console.error(`seed ${seed}`)
const done = await killAtRandom({ times: Number(values.times), seed, tell: (line) => console.error(line) })
console.log(JSON.stringify({ seed, ...done }))

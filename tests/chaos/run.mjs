// npm run chaos -- [--calls 10000] [--only hangs]
import { parseArgs } from 'node:util'
import { playChaos } from './chaos.mjs'

const { values } = parseArgs({ options: { calls: { type: 'string', default: '10000' }, only: { type: 'string' } } })
const done = await playChaos({
  calls: Number(values.calls),
  only: values.only,
  tell: (line) => console.error(line),
})
console.log(JSON.stringify(done))

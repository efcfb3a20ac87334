/** The start of a program that speaks the protocol by hand: `say` prints a message, `on` gets each of the host's. */
export const RAW = `
import { createInterface } from 'node:readline'
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const listen = (on) => createInterface({ input: process.stdin }).on('line', (line) => on(JSON.parse(line)))
`

/** The program of a gate that does `answer` for a call, with `{ subject, input }` and `ctx` at hand. */
export const gateProgram = (answer: string): string =>
  `serve({ Gate: { toolCall: { before: async ({ subject, input }, ctx) => { ${answer} } } } })`

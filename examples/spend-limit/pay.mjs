// Pays some amounts at once, on a thread: node pay.mjs <store> <thread> <amount>…
// With `hang` before the amounts, no payment comes to its end; with `continue` instead, the run that was cut off goes on.
import { fileURLToPath } from 'node:url'
import { END, graph, node, START, state, tool } from '@sluice/core'
import { openHost, sqliteStore } from '@sluice/host'
import { z } from 'zod'

const [file, thread, ...words] = process.argv.slice(2)
const [hangs, continues] = ['hang', 'continue'].map((word) => words.includes(word))

const Payments = state({ amounts: z.array(z.number()).default([]), results: z.array(z.string()).default([]) })

const pay = tool('pay', {
  description: 'Pays an amount.',
  input: z.object({ amount: z.number() }),
  idempotent: true,
  run({ amount }) {
    console.log(`paying ${amount}`)
    return hangs ? new Promise(() => {}) : `paid ${amount}`
  },
})

const payAll = node('pay_all', Payments, async ({ amounts }, ctx) => ({
  results: await Promise.all(
    amounts.map((amount) => ctx.callTool(pay, { amount }).catch((error) => `refused: ${error.message}`)),
  ),
}))

const payments = graph('payments', Payments).edge(START, payAll).edge(payAll, END).check()

const store = sqliteStore(file)
const host = await openHost({
  store,
  plugins: [fileURLToPath(new URL('spend-limit.json', import.meta.url))],
  pluginConfig: ['SpendLimit={"limit":100}'],
})
try {
  const { state: paid } = continues
    ? await host.runtime.continue(payments, thread)
    : await host.runtime.run(payments, { amounts: words.map(Number).filter(Number.isFinite) }, { thread })
  console.log(JSON.stringify(paid.results))
} finally {
  await host.close()
  await store.close()
}

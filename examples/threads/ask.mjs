// #region ask
import { refunds, runtime, store } from './refunds.mjs'

const { status, asks } = await runtime.run(refunds, { order: '991' }, { thread: 'order-991' })
console.log(status)
for (const { key, payload } of asks) console.log(key, payload.question)
store.close()
// #endregion

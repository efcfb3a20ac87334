// #region answer
import { refunds, runtime, store } from './refunds.mjs'

const { status, state } = await runtime.resume(refunds, 'order-991', { 'review:approve': { approved: true } })
console.log(status, state.log)
store.close()
// #endregion

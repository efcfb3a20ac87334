// For a host that runs handlers in its own process.
export { Context, type Link } from './runtime/context.ts'
export { wireErrorOf } from './runtime/fault.ts'
export { invoke, isThenable, type Served } from './runtime/invoke.ts'

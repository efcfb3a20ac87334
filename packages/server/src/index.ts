export type { AppOptions } from './app.ts'
export { type Principal, SCOPES, type Scope } from './guard/principal.ts'
export type { ErrorBody } from './http/errors.ts'
export { createServer, type ListenOptions, Server, type ServerOptions } from './server.ts'

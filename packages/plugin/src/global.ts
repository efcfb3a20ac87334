// Preloaded by the host, so that a plugin program may call `serve` without importing anything.
import { serve as serveOverStdio } from './runtime/serve.ts'

declare global {
  var serve: typeof serveOverStdio
}

globalThis.serve = serveOverStdio

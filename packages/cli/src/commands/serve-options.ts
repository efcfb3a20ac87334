import type { Rate } from '@sluice/server'
import { type Command, InvalidArgumentError } from 'commander'
import { type MachineFlags, machineOptions } from './machine-options.ts'
import { collect, whole } from './values.ts'

/** The flags of `sluice serve`, as read. */
export interface ServeFlags extends MachineFlags {
  readonly flows?: string
  readonly host: string
  readonly port: number
  readonly store?: string
  readonly watch?: boolean
  readonly allowNet?: readonly string[]
  readonly allowRequestCode?: boolean
  readonly workDir?: string
  readonly maxRequestTools?: number
  readonly maxRequestPlugins?: number
  readonly maxRequestFiles?: number
  readonly maxRequestCodeBytes?: number
  readonly tokens?: string
  readonly rate?: Rate
  readonly maxConcurrent?: number
  readonly maxConcurrentPerCaller?: number
  readonly maxQueue?: number
  readonly corsOrigin?: readonly string[]
  readonly drainTimeout: number
}

export function addServe(program: Command, version: string): void {
  const command = program
    .command('serve')
    .summary('serve flows over HTTP')
    .description(
      'Answer requests to run flows, for many callers. Everything is loaded and checked before the port opens.',
    )
    .showHelpAfterError('(sluice serve --help says what there is)')
    .option('--flows <folder>', 'each .json, .yaml and .yml file in it is a flow that requests may name')
    .option('--host <address>', 'the address to listen at', '127.0.0.1')
    .option('--port <n>', 'the port to listen at; 0 for one that is free', port, 4319)
    .option('--store <file>', 'the file that keeps threads and runs (default: $SLUICE_STORE, or this process alone)')
    .option(
      '--allow-net <host[:port]>',
      'let models of flows that come with requests be at this private address (repeatable)',
      collect,
    )
    .option(
      '--allow-request-code',
      'let requests bring tools, plugins and files for their own run; they have the rights of this process, so confine it',
    )
    .option('--work-dir <folder>', 'where such code lies while it runs (default: the folder for temporary files)')
    .option('--max-request-tools <n>', 'tools that a request may bring (default: 10)', whole)
    .option('--max-request-plugins <n>', 'plugins that a request may bring (default: 5)', whole)
    .option('--max-request-files <n>', 'files that a request may bring (default: 20)', whole)
    .option('--max-request-code-bytes <n>', 'bytes of code that a request may bring (default: 262144)', whole)
    .option('--watch', 'load the policy file and the file of tokens anew when they change, as SIGHUP does')
    .option('--tokens <file>', 'who may call: a file with hashes of their tokens, see "sluice token new"')
    .option('--rate <n>/<s>', 'requests that one caller may send in so many seconds (default: any number)', rate)
    .option('--max-concurrent <n>', 'runs at once; others wait (default: 16)', whole)
    .option('--max-concurrent-per-caller <n>', 'of one caller, where callers are known (default: all)', whole)
    .option('--max-queue <n>', 'runs that may wait; one more is refused (default: 64)', whole)
    .option(
      '--cors-origin <origin>',
      'an origin whose pages may call, as https://app.example.com (repeatable)',
      collect,
    )
    .option('--drain-timeout <s>', 'how long runs may take to come to a stop when the server ends', seconds, 30)
  machineOptions(command).action(async (flags: ServeFlags) => {
    const { serve } = await import('./serve.ts')
    process.exitCode = await serve(flags, version)
  })
}

function rate(text: string): Rate {
  const [, requests, seconds] = /^([1-9]\d{0,8})\/([1-9]\d{0,8})$/.exec(text) ?? []
  if (requests !== undefined && seconds !== undefined) return { requests: Number(requests), seconds: Number(seconds) }
  throw new InvalidArgumentError('give so many requests in so many seconds, as 100/60.')
}

function seconds(text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && value >= 0 && value <= 86_400) return value
  throw new InvalidArgumentError('give seconds, up to 86400.')
}

function port(text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 0 && value <= 65_535) return value
  throw new InvalidArgumentError('give a whole number from 0 to 65535.')
}

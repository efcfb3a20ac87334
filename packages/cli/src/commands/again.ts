import { MAIN } from '@sluice/core'
import { flagWords, shellWord } from '../render/shell.ts'
import type { StoreFile } from '../store/file.ts'
import { YOURS } from './answers.ts'
import type { RunFlags } from './run-options.ts'

/** A line of a thread, and the file that keeps it. */
interface KeptLine {
  readonly thread: string
  readonly branch: string
  readonly store: StoreFile
}

/** The command that answers these questions; what a person has to put in its place stands as `…`. */
export const resumeCommand = (call: readonly string[], line: KeptLine, keys: readonly string[]): string =>
  commandLine(call, line, ['--resume', ...keys.flatMap((key) => flagWords('--answer', `${key}=${YOURS}`))])

export const continueCommand = (call: readonly string[], line: KeptLine): string =>
  commandLine(call, line, ['--continue'])

function commandLine(call: readonly string[], { thread, branch, store }: KeptLine, how: readonly string[]): string {
  const words = [
    ...(store.named ? flagWords('--store', store.path) : []),
    ...flagWords('--thread', thread),
    ...(branch === MAIN ? [] : flagWords('--branch', branch)),
    ...how,
  ]
  return ['sluice run', ...call, ...words.map(shellWord)].join(' ')
}

/** A flow and all that it was run with, as words for a shell. Values of variables are not repeated: they may be secrets. */
export function callWords(flow: string, flags: RunFlags): readonly string[] {
  const each = (flag: string, values: readonly (string | number | undefined)[] = []) =>
    values.flatMap((value) => (value === undefined ? [] : flagWords(flag, String(value))))
  const words = [
    flow.startsWith('-') ? `./${flow}` : flow,
    ...each('--tools-dir', [flags.toolsDir]),
    ...each('--policies', [flags.policies]),
    ...each('--plugin', flags.plugin),
    ...each('--plugin-config', flags.pluginConfig),
    ...each(
      '--plugin-env',
      flags.pluginEnv?.map((text) => text.replace(/=[\s\S]*/, `=${YOURS}`)),
    ),
    ...(flags.discoverTools ? ['--discover-tools'] : []),
    ...each('--max-iterations', [flags.maxIterations]),
    ...each('--max-node-attempts', [flags.maxNodeAttempts]),
    ...each('--max-tool-rounds', [flags.maxToolRounds]),
    ...each('--timeout', [flags.timeout]),
    ...each('--protocol', [flags.protocol]),
    ...each('--principal', [flags.principal]),
  ]
  return words.map(shellWord)
}

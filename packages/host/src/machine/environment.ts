import { SluiceError } from '@sluice/core'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * What plugins are given of the environment: only what is named, as `NAME` (this process's value) or `NAME=value`.
 *
 * @throws SluiceError `PLUGIN_ENV` for a name that is none; a `NAME` that is not set is left out.
 */
export function pluginEnvironment(named: readonly string[], env: Environment): Record<string, string> {
  const given: Record<string, string> = {}
  for (const text of named) {
    const [, name, value] = /^([A-Za-z_]\w*)(?:=([\s\S]*))?$/.exec(text) ?? []
    if (name === undefined)
      throw new SluiceError(
        'PLUGIN_ENV',
        `--plugin-env ${JSON.stringify(text)} names no variable; write NAME or NAME=value.`,
      )
    const set = value ?? env[name]
    if (set !== undefined) given[name] = set
  }
  return given
}

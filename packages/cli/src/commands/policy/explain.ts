import { type Explanation, openHost } from '@sluice/host'
import { EXIT } from '../../exit.ts'
import { escapeControls, printJson } from '../../render/escape.ts'
import { table } from '../../render/table.ts'
import { policyFile } from '../policy-file.ts'
import type { ExplainFlags } from '../policy-options.ts'

/** Prints who is consulted where, and what of a flow nobody guards. */
export async function explain(flow: string | undefined, flags: ExplainFlags): Promise<number> {
  const { policies, plugin: plugins, pluginConfig, pluginEnv, toolsDir, json } = flags
  const host = await openHost({ policies: policyFile(policies), plugins, pluginConfig, pluginEnv, toolsDir })
  try {
    const explanation = await host.explain(flow)
    if (json) printJson(explanation)
    else process.stdout.write(textOf(explanation))
    return EXIT.completed
  } finally {
    await host.close()
  }
}

type Place = NonNullable<Explanation['places']>[number]

function textOf(explanation: Explanation): string {
  const { policies, places } = explanation
  const chain =
    policies.length === 0
      ? 'no policy is installed\n'
      : shown(policies.map((policy) => [...chainRow(policy), reachText(policy, places ?? [])]))
  const held = shown([['streams', streamsText(explanation)]])
  return places === undefined ? `${chain}\n${held}` : `${chain}\n${held}\n${placesText(places)}${unguardedText(places)}`
}

const shown = (rows: readonly (readonly string[])[]) => table(rows.map((row) => row.map(escapeControls)))

/** The mode stands first of what is said about a policy: what only watches must not be taken for what guards. */
function chainRow({ seam, half, place, name, mode, onFailure, kind, origin }: Explanation['policies'][number]) {
  return [`${seam}.${half}`, String(place), mode, name, kind, `on failure: ${onFailure}`, origin]
}

function reachText(
  { seam, half, name, mode, match, observes, keeps }: Explanation['policies'][number],
  places: readonly Place[],
): string {
  const calls = match === undefined ? 'every call' : `where ${match.replace(/\s+/g, ' ').trim()}`
  const told = observes ? `${calls} (only told)` : calls
  const about = keeps === undefined ? told : `${told}, keeps by ${keeps}`
  const here = places.filter((place) => place.seam === seam)
  if (here.length === 0 || mode === 'off') return about
  const reached = here.filter(({ reachedBy }) => reachedBy.some((by) => by.half === half && by.name === name))
  return `${about}: ${reached.length} of ${here.length} places`
}

function streamsText({ streamsHeldBy, afterStreams }: Explanation): string {
  const held = streamsHeldBy.length === 0 ? 'not held' : `held until ${streamsHeldBy.join(', ')} has judged`
  const late = afterStreams.length === 0 ? '' : `; ${afterStreams.join(', ')} judges only when parts have left`
  return `${held}${late}`
}

function placesText(places: readonly Place[]): string {
  const rows = places
    .filter(({ reachedBy }) => reachedBy.length > 0)
    .map(({ seam, what, node, reachedBy }) => [
      seam,
      what,
      node,
      reachedBy.map(({ half, name, reach }) => `${half} ${name}${reach === 'may' ? ' (may be)' : ''}`).join(', '),
    ])
  return rows.length === 0 ? '' : `${shown(rows)}\n`
}

/** Calls of tools and models by their own; nodes in one line, for without a policy at `node` it is all of them. */
function unguardedText(places: readonly Place[]): string {
  const unguarded = places.filter(({ guarded }) => !guarded)
  const calls = unguarded.filter(({ seam }) => seam === 'toolCall' || seam === 'modelCall')
  const nodes = unguarded.filter(({ seam }) => seam === 'node').map(({ node }) => node)
  const rows = [
    ...calls.map(({ what, node }) => ['unguarded', what, `from node ${node}`]),
    ...(nodes.length === 0 ? [] : [['unguarded', 'nodes', nodes.join(', ')]]),
  ]
  return rows.length === 0 ? 'nothing is unguarded\n' : shown(rows)
}

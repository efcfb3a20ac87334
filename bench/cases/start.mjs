// What the command costs to start: a trivial flow, against a bare node that does nothing.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { row } from '../lib/measure.mjs'

const RUNS = 21
const command = fileURLToPath(new URL('../../packages/cli/bin/sluice.js', import.meta.url))

const edge = (from, to) => ({
  component_type: 'ControlFlowEdge',
  name: `${from}_${to}`,
  from_node: { $component_ref: from },
  to_node: { $component_ref: to },
})
const flow = {
  component_type: 'Flow',
  agentspec_version: '26.1.0',
  name: 'trivial',
  start_node: { $component_ref: 'start' },
  nodes: [{ $component_ref: 'start' }, { $component_ref: 'end' }],
  control_flow_connections: [edge('start', 'end')],
  $referenced_components: {
    start: { component_type: 'StartNode', id: 'start', name: 'start' },
    end: { component_type: 'EndNode', id: 'end', name: 'end' },
  },
}

function wall(args) {
  const start = performance.now()
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return performance.now() - start
}

export default async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  try {
    const file = join(folder, 'flow.json')
    writeFileSync(file, JSON.stringify(flow))
    const empty = join(folder, 'empty.cjs')
    writeFileSync(empty, '')
    const took = { bare: [], run: [], version: [] }
    for (let i = 0; i < RUNS; i++) {
      took.bare.push(wall([empty]))
      took.run.push(wall([command, 'run', file]))
      took.version.push(wall([command, '--version']))
    }
    const [bare, run, version] = [took.bare, took.run, took.version].map((list) => list.sort((a, b) => a - b))
    const middle = RUNS >> 1
    const extra = run[middle] - bare[middle]
    return [
      row('sluice run, trivial flow, wall', 'a process', run[middle], 'ms', {
        best: run[0],
        floor: bare[middle],
        goal: '≤ bare node + 55',
        holds: run[0] - bare[0] <= 55,
      }),
      row('sluice run, trivial flow, wall', 'beyond bare node', extra, 'ms', {
        best: run[0] - bare[0],
        goal: '≤ 55',
        holds: run[0] - bare[0] <= 55,
      }),
      row('sluice --version, wall', 'a process', version[middle], 'ms', { best: version[0], floor: bare[middle] }),
    ]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

export const command = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunningCommand {
  readonly pid: number
  readonly ended: Promise<Ended>
  /** Resolves when stderr holds this text; of `stdout`, when that does. */
  says(text: string, where?: 'stdout' | 'stderr'): Promise<void>
  /** What stands there so far. */
  stderr(): string
  /** Types lines, where it was started to be typed to. */
  type(...lines: readonly string[]): void
  endInput(): void
  signal(name: NodeJS.Signals): void
}

/** Starts the built command, as a user would, in a folder. */
export function start(
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
  cwd?: string,
  stdin: 'ignore' | 'pipe' = 'ignore',
): RunningCommand {
  const child = spawn(process.execPath, [command, ...args], { env, cwd, stdio: [stdin, 'pipe', 'pipe'] })
  const out = { stdout: '', stderr: '' }
  const listeners: (() => void)[] = []
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream]?.setEncoding('utf8').on('data', (text: string) => {
      out[stream] += text
      for (const listener of listeners) listener()
    })
  }
  return {
    pid: child.pid as number,
    ended: new Promise((resolve) => child.on('close', (code) => resolve({ code, ...out }))),
    type: (...lines) => void child.stdin?.write(lines.map((line) => `${line}\n`).join('')),
    endInput: () => void child.stdin?.end(),
    says: (text, where = 'stderr') =>
      new Promise((resolve) => {
        const look = () => {
          if (out[where].includes(text)) resolve()
        }
        listeners.push(look)
        look()
      }),
    stderr: () => out.stderr,
    signal: (name) => child.kill(name),
  }
}

export const sluice = (...args: readonly string[]): Promise<Ended> => start(args).ended

/** A new folder with these files, removed after the test. A text that begins with `#!` is executable; an object is JSON. */
export function folderOf(files: Readonly<Record<string, string | object>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    const text = typeof content === 'string' ? content : JSON.stringify(content)
    writeFileSync(join(folder, name), text, { mode: text.startsWith('#!') ? 0o755 : 0o644 })
  }
  return folder
}

interface FlowParts {
  readonly nodes?: Readonly<Record<string, object>>
  readonly inputs?: readonly object[]
  readonly outputs?: readonly object[]
}

/** A flow whose nodes run one after another, between a start and an end. */
export function flowOf({ nodes = {}, inputs = [], outputs }: FlowParts = {}): object {
  const names = ['start', ...Object.keys(nodes), 'end']
  const components = {
    start: { component_type: 'StartNode', inputs },
    ...nodes,
    end: { component_type: 'EndNode', ...(outputs === undefined ? {} : { outputs }) },
  }
  const ref = (name: string) => ({ $component_ref: name })
  return {
    component_type: 'Flow',
    agentspec_version: '26.1.0',
    name: 'test',
    start_node: ref('start'),
    nodes: names.map(ref),
    control_flow_connections: names.slice(1).map((to, i) => ({
      component_type: 'ControlFlowEdge',
      name: `${names[i]}_${to}`,
      from_node: ref(names[i] as string),
      to_node: ref(to),
    })),
    $referenced_components: Object.fromEntries(
      Object.entries(components).map(([name, component]) => [name, { id: name, name, ...component }]),
    ),
  }
}

export const text = (title: string) => ({ title, type: 'string' })

/** A node that calls the tool of this name. */
export const toolNode = (name: string, inputs: readonly object[] = [], outputs: readonly object[] = []) => ({
  component_type: 'ToolNode',
  tool: { component_type: 'ServerTool', id: `${name}-tool`, name, description: `The tool ${name}.`, inputs, outputs },
})

/** A manifest with one policy of this name. */
export const policyManifest = (
  type: string,
  seams: Readonly<Record<string, readonly string[]>>,
  rest: object = {},
) => ({
  name: type.toLowerCase(),
  version: '1.0.0',
  capabilities: [],
  components: [{ componentType: type, kind: 'middleware', seams, ...rest }],
})

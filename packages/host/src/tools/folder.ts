import { readdir } from 'node:fs/promises'
import { join, parse, resolve } from 'node:path'
import { messageOf, own, SluiceError, type Tool, toolTable } from '@sluice/core'
import { isExecutable, isFile } from '../manifest/entry.ts'
import { runProgram, TOOL_TIMEOUT_MS } from './program.ts'

export interface ToolsDirOptions {
  /** Where the programs run; this process's own folder when nothing is said. */
  readonly cwd?: string
  /** Their whole environment; this process's own when nothing is said. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly timeoutMs?: number
}

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/

/**
 * The tools of a folder: each executable file directly in it is one, named by its file name without the last extension. They
 * run with this process's whole environment, as the operator's own programs. What they take is for the document to say.
 *
 * @throws SluiceError `TOOLS_DIR` for a folder that cannot be read or a file name that is no tool name, `TOOL_DUPLICATE` for
 *   two files that would be one tool.
 */
export async function loadToolPrograms(dir: string, options: ToolsDirOptions = {}): Promise<readonly Tool[]> {
  const folder = resolve(dir)
  const names = await readdir(folder).catch((error) => {
    throw new SluiceError('TOOLS_DIR', `the folder of tools cannot be read: ${messageOf(error)}.`, { file: folder })
  })
  const tools: Tool[] = []
  for (const file of names.toSorted()) {
    const path = join(folder, file)
    if ((await isFile(path)) && (await isExecutable(path))) tools.push(programTool(path, options))
  }
  toolTable(tools)
  return tools
}

function programTool(path: string, options: ToolsDirOptions): Tool {
  const { cwd = process.cwd(), env = process.env, timeoutMs = TOOL_TIMEOUT_MS } = options
  const { name, base } = parse(path)
  if (!TOOL_NAME.test(name)) {
    throw new SluiceError(
      'TOOLS_DIR',
      `"${name}" is no tool name; call the file by letters, digits, "_" and "-", at most 64, or take its execute bit away.`,
      { file: path },
    )
  }
  return {
    name,
    description: `The program ${base}.`,
    parameters: { type: 'object' },
    source: 'tools-dir',
    idempotent: false,
    readArguments: (args) => args,
    readResult: (value) => own(value ?? null, `the result of tool "${name}"`),
    run: (args, { signal }) => runProgram(name, { command: [path], cwd, env }, args, signal, timeoutMs),
  }
}

import { openHost } from '@sluice/host'
import { EXIT } from '../exit.ts'
import { faultText } from '../render/error.ts'
import { escapeControls } from '../render/escape.ts'
import { policyFile } from './policy-file.ts'
import type { ValidateFlags } from './validate-options.ts'

/** Checks a document, prints its warnings and what it is, and says 0; a document with faults is thrown as one error. */
export async function validateFlow(file: string, { policies, plugin }: ValidateFlags): Promise<number> {
  const host = await openHost({ policies: policyFile(policies), plugins: plugin })
  try {
    const document = await host.loadDocument(file)
    for (const warning of document.warnings) process.stderr.write(`${faultText(warning)}\n`)
    process.stdout.write(`${escapeControls(describe(document))}\n`)
    return EXIT.completed
  } finally {
    await host.close()
  }
}

function describe(document: Awaited<ReturnType<Awaited<ReturnType<typeof openHost>>['loadDocument']>>): string {
  switch (document.kind) {
    case 'flow':
      return `flow "${document.flow.name}" is sound: ${document.flow.nodes.length} nodes`
    case 'agent':
      return `agent "${document.agent.name}" is sound; only a flow runs, so put it into an AgentNode to run it`
    case 'component':
      return `the ${document.type} is sound; only a flow runs`
    case 'library':
      return 'the library of components is sound'
  }
}

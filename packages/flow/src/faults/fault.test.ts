import { describe, expect, it } from 'vitest'
import { end, faultsOf, flowOf, load, start, typed } from '../document.fixture.ts'
import { FlowError, showFault } from './fault.ts'

const document = flowOf(
  {
    start: start(typed('query', 'string')),
    triage: {
      component_type: 'BranchingNode',
      inputs: [typed('query', 'string')],
      mapping: { now: 'urgent' },
    },
    escalate: { component_type: 'ToolNode', tool: { component_type: 'ServerTool', name: 'call' } },
    end: end(),
  },
  ['start -> triage', 'triage[default] -> end', 'triage[urgnt] -> end', 'escalate -> end'],
)

describe('the error of a document', () => {
  it('says the first fault in full, with its mend, and names the others', async () => {
    const error: FlowError = await load(document, { file: 'support.json' }).then(
      () => undefined as never,
      (reason) => reason,
    )
    expect(error).toBeInstanceOf(FlowError)
    expect(error).toMatchObject({ code: 'FLOW_INVALID', name: 'FlowError', at: { file: 'support.json', line: 1 } })
    expect(error.message).toBe(
      [
        `FLOW_BRANCH_UNUSED  support.json:1:${error.faults[0]?.column}`,
        '  node "triage" never chooses branch "urgnt"; its branches are: "urgent", "default".',
        '  Did you mean "urgent"?',
        `  1 of 3 faults; the others: FLOW_BRANCH_MISSING support.json:1:${error.faults[1]?.column}, FLOW_UNREACHABLE support.json:1:${error.faults[2]?.column}`,
      ].join('\n'),
    )
  })

  it('has every fault, in the order of the text', async () => {
    const faults = await faultsOf(document)
    expect(faults.map(({ code }) => code)).toEqual(['FLOW_BRANCH_UNUSED', 'FLOW_BRANCH_MISSING', 'FLOW_UNREACHABLE'])
    expect(faults.map(({ column }) => column)).toEqual(faults.map(({ column }) => column).toSorted((a, b) => a - b))
    expect(showFault(faults[2] as (typeof faults)[number])).toContain(
      'node "escalate" is never reached: no control flow edge leads to it.\n  Add an edge from "triage", branch "urgent" (it has none), or remove the node.',
    )
  })
})

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { faultsOf, pluginTypes } from './document.fixture.ts'

const corpus = process.env.SLUICE_CORPUS ?? fileURLToPath(new URL('../../../../shared/agent-spec', import.meta.url))
const isThere = existsSync(`${corpus}/index.json`)
if (!isThere)
  console.warn('The corpus of Agent Spec documents is not there; set SLUICE_CORPUS to its folder to test with it.')

/** What the plugins of those documents would provide. */
const plugins = pluginTypes({
  Processor: { kind: 'transform', plugin: 'guardrails', version: '1.0.0' },
  StubModelConfig: { kind: 'provider', plugin: 'policies', version: '1.0.0' },
})

const documentsIn = (folder: string) =>
  readdirSync(`${corpus}/${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(json|ya?ml)$/.test(file))
    .map((file) => `${folder}/${file.replaceAll('\\', '/')}`)
    .toSorted()

/** `valid`, `unsupported`, or the codes of what is wrong. As YAML, `[[NAME]]` would be a list. */
async function verdictOn(file: string): Promise<string> {
  const text = readFileSync(`${corpus}/${file}`, 'utf8').replaceAll(/\[\[\w+\]\]/g, 'http://model.invalid')
  const codes = new Set((await faultsOf(text, { file, plugins })).map(({ code }) => code))
  if (codes.size === 0) return 'valid'
  return codes.has('FLOW_TYPE_UNSUPPORTED') && codes.size === 1 ? 'unsupported' : [...codes].toSorted().join(' ')
}

async function verdictsOn(files: readonly string[]): Promise<Map<string, string>> {
  return new Map(await Promise.all(files.map(async (file): Promise<[string, string]> => [file, await verdictOn(file)])))
}

function counted(verdicts: ReadonlyMap<string, string>) {
  const of = (wanted: string) => [...verdicts.values()].filter((verdict) => verdict === wanted).length
  const [valid, unsupported] = [of('valid'), of('unsupported')]
  return { documents: verdicts.size, valid, unsupported, faulty: verdicts.size - valid - unsupported }
}

describe.skipIf(!isThere)('documents of others', () => {
  it('N8: the examples of heddle all validate', async () => {
    const verdicts = await verdictsOn(documentsIn('heddle'))
    console.info('heddle', counted(verdicts))
    expect([...verdicts].filter(([, verdict]) => verdict !== 'valid')).toEqual([])
  })

  it('those of the conformance suite validate, or have a type that is not supported yet', async () => {
    const verdicts = await verdictsOn(documentsIn('conformance-suite/tests'))
    console.info('conformance suite', counted(verdicts))
    expect([...verdicts].filter(([, verdict]) => verdict !== 'valid' && verdict !== 'unsupported')).toEqual([])
    // Both documents that must fail hold a ParallelFlowNode.
    expect(
      [...verdicts].filter(([file, verdict]) => file.includes('/invalid_configs/') && verdict === 'valid'),
    ).toEqual([])
  })

  it('those that the Python tools must refuse are refused', async () => {
    const verdicts = await verdictsOn(documentsIn('pyagentspec-tests/agentspec_configs/invalid'))
    expect([...verdicts.values()].toSorted()).toEqual([
      'FLOW_ID_TWICE FLOW_INPUT_UNFED',
      'FLOW_REF_CYCLE FLOW_UNREACHABLE',
      'FLOW_VERSION_NESTED',
      'FLOW_VERSION_UNKNOWN',
    ])
  })

  it.each(['examples', 'pyagentspec-tests', 'wayflow'])('those of %s never crash', async (folder) => {
    const verdicts = await verdictsOn(documentsIn(folder))
    console.info(folder, counted(verdicts))
    expect(verdicts.size).toBeGreaterThan(0)
  })
})

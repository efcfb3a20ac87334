import { describe, expect, it } from 'vitest'
import { agent, llm, shortFaults, shortWarnings } from '../document.fixture.ts'

describe('the version of a document', () => {
  it.each([
    '25.3.0',
    '25.4.0',
    '25.4.1',
    '25.4.2',
    '26.1.0',
    '26.1.1',
    '26.1.2',
    '26.2.0',
    '26.3.0',
    '26.3.1',
    '26.4.0',
  ])('may be %s', async (version) => expect(await shortWarnings(agent({ agentspec_version: version }))).toEqual([]))

  it('may be left out', async () => expect(await shortWarnings(agent())).toEqual([]))

  it('may stand under its old name', async () =>
    expect(await shortWarnings(agent({ air_version: '25.3.1' }))).toEqual([]))

  it.each(['26.4.1', '26.5.0', '27.1.0'])(
    '%s is newer: read as far as it is understood, with a warning',
    async (version) =>
      expect(await shortWarnings(agent({ agentspec_version: version }))).toEqual([
        'FLOW_VERSION_NEWER $.agentspec_version',
      ]),
  )

  it.each(['20.99.99', 'latest', '26.1'])('%s is none', async (version) =>
    expect(await shortFaults(agent({ agentspec_version: version }))).toEqual([
      'FLOW_VERSION_UNKNOWN $.agentspec_version',
    ]),
  )

  it('is text, not a number', async () =>
    expect(await shortFaults(agent({ agentspec_version: 26.1 }))).toEqual(['FLOW_FIELD_TYPE $.agentspec_version']))

  it('stands at the top only', async () =>
    expect(await shortFaults(agent({ llm_config: llm({ agentspec_version: '26.1.0' }) }))).toEqual([
      'FLOW_VERSION_NESTED $.llm_config.agentspec_version',
    ]))
})

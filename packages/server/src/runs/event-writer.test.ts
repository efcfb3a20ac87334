import { memoryRunLog, type RunEntry, type RunLog } from '@sluice/host'
import { describe, expect, it } from 'vitest'
import { type EventLimits, EventWriter } from './event-writer.ts'

const entry: RunEntry = {
  id: 'r',
  owner: '',
  thread: 't',
  branch: 'main',
  flow: { name: 'f' },
  begun: { kind: 'start', inputs: {} },
  by: 'local',
  startedBy: 'local',
  at: 1,
}

/** A log each of whose writes waits until it is let go on. */
function slowLog() {
  const log = memoryRunLog()
  log.begin(entry)
  const waiting: (() => void)[] = []
  const batches: number[] = []
  const append: RunLog['append'] = (run, texts) => {
    batches.push(texts.length)
    return new Promise((resolve) => {
      waiting.push(() => resolve(log.append(run, texts)))
    })
  }
  return { log, batches, slow: Object.assign(Object.create(log), { append }) as RunLog, go: () => waiting.shift()?.() }
}

const textsOf = async (log: RunLog) => (await log.events('r', 0, 9_999)).map(({ text }) => text)
const settled = () => new Promise(setImmediate)

const writerOf = (log: RunLog, keep?: EventLimits, written = 0) =>
  new EventWriter({
    log,
    run: 'r',
    onWritten: () => {},
    written,
    notice: 'too many',
    ...(keep === undefined ? {} : { keep }),
  })

function begunLog(): RunLog {
  const log = memoryRunLog()
  log.begin(entry)
  return log
}

describe('what writes the events of a run down', () => {
  it('does not wait for each: what comes during a write goes with the next, and what came last with the end', async () => {
    const { log, slow, batches, go } = slowLog()
    const writer = writerOf(slow)
    for (const text of ['1', '2', '3']) expect(writer.write(text)).toBeUndefined()
    go()
    await settled()
    for (const text of ['4', '5']) writer.write(text)
    const rest = writer.rest()
    go()
    expect(await rest).toEqual(['4', '5'])
    expect(await textsOf(log)).toEqual(['1', '2', '3'])
    expect(batches).toEqual([1, 2])
  })

  it('tells of events when they are written, and not before', async () => {
    const { log, slow, go } = slowLog()
    let told = 0
    const writer = new EventWriter({ log: slow, run: 'r', onWritten: () => told++, notice: 'too many' })
    writer.write('1')
    await settled()
    expect([told, await textsOf(log)]).toEqual([0, []])
    go()
    await settled()
    expect([told, await textsOf(log)]).toEqual([1, ['1']])
  })

  it('lets who makes them wait when 1,024 are unwritten', async () => {
    const { slow, go } = slowLog()
    const writer = writerOf(slow)
    const waits = Array.from({ length: 1_025 }, (_, i) => writer.write(String(i)))
    expect(waits.findIndex((wait) => wait !== undefined)).toBe(1_024)
    go()
    await settled()
    go()
    await waits.at(-1)
    expect(await writer.rest()).toEqual([])
  })

  it.each([
    { of: 'events', keep: { events: 2, characters: 99 }, kept: ['aa', 'bb'] },
    { of: 'characters', keep: { events: 99, characters: 5 }, kept: ['aa', 'bb'] },
    { of: 'events, those of before included', keep: { events: 2, characters: 99 }, written: 1, kept: ['aa'] },
  ])('keeps the first of too many $of, and says so once', async ({ keep, kept, written }) => {
    const log = begunLog()
    const writer = writerOf(log, keep, written)
    for (const text of ['aa', 'bb', 'cc', 'dd', 'e']) await writer.write(text)
    const rest = await writer.rest()
    expect([...(await textsOf(log)), ...rest]).toEqual([...kept, 'too many'])
  })

  it('writes nothing more once a write has failed, and keeps nobody waiting', async () => {
    const log = begunLog()
    log.release('r')
    const writer = writerOf(log)
    writer.write('1')
    await writer.rest()
    expect(writer.failure).toMatchObject({ code: 'RUN_LOST' })
    expect(writer.write('2')).toBeUndefined()
    expect(await writer.rest()).toEqual([])
  })
})

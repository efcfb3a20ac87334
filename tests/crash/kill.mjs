// Kills the worker at random moments and starts it again until its thread has ended, then checks what came of it.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { EFFECTS, effectsIn } from './scenario.mjs'

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url))

/** A generator of numbers from 0 to 1, the same for the same seed (mulberry32). */
export function random(seed) {
  let a = seed >>> 0
  return () => {
    a = (a + 0x6d2b79f5) | 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/**
 * One life of the worker. It is killed `afterMs` after it is ready, if it has not ended by then; without, it is left alone.
 *
 * @returns what it printed, whether it was killed, how long it took once it was ready, and what it said of faults
 */
function live(args, afterMs) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [WORKER, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    let [out, err, readyAt, timer, killed] = ['', '', 0, undefined, false]
    child.stderr.on('data', (data) => (err += data))
    child.stdout.on('data', (data) => {
      out += data
      if (readyAt > 0) return
      readyAt = performance.now()
      if (afterMs === undefined) return
      timer = setTimeout(() => {
        killed = child.kill('SIGKILL')
      }, afterMs)
    })
    child.on('error', reject)
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      resolve({ out, err, code, killed: killed && signal === 'SIGKILL', ms: performance.now() - readyAt })
    })
  })
}

/** What a thread came to, as the worker printed it. */
const resultOf = ({ out }) => JSON.parse(out.split('\n').at(-2))

/** @throws what is wrong with what the thread has done, in words */
function check(thread, life, effects, expected) {
  if (life.code !== 0) throw new Error(`${thread}: the worker ended with ${life.code}: ${life.err}`)
  const result = JSON.stringify(resultOf(life))
  if (result !== expected) throw new Error(`${thread}: it came to ${result}, undisturbed to ${expected}`)
  const counts = effectsIn(effects)
  for (const effect of EFFECTS) {
    if (counts.get(effect) !== 1) throw new Error(`${thread}: "${effect}" happened ${counts.get(effect) ?? 0} times`)
  }
}

/**
 * Kills workers `times` times, over as many threads of one store as that takes.
 *
 * @returns {Promise<{ kills: number, threads: number, lives: number }>}
 */
export async function killAtRandom({ times, seed, tell = () => undefined }) {
  const next = random(seed)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-crash-'))
  const [store, effectsOf] = [join(folder, 'threads.db'), (thread) => join(folder, `${thread}.effects`)]
  try {
    const undisturbed = await live([join(folder, 'quiet.db'), 'quiet', effectsOf('quiet')])
    if (undisturbed.code !== 0) throw new Error(undisturbed.err)
    const expected = JSON.stringify(resultOf(undisturbed))
    check('quiet', undisturbed, effectsOf('quiet'), expected)
    let [kills, threads, lives] = [0, 0, 0]
    const one = async () => {
      const thread = `thread-${threads++}`
      for (;;) {
        lives++
        const life = await live([store, thread, effectsOf(thread)], kills < times ? next() * undisturbed.ms : undefined)
        if (!life.killed) {
          check(thread, life, effectsOf(thread), expected)
          return
        }
        kills++
        if (kills % 100 === 0) tell(`${kills} kills, ${threads} threads`)
      }
    }
    const lane = async () => {
      while (kills < times) await one()
    }
    await Promise.all([lane(), lane()])
    return { kills, threads, lives }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

// Shared by every suite. A suite is an ES module that exports
//   meta  = { subject, packages: [npm names whose versions to report] }
//   cases = async (h) => [ { id, group, unit, ops, fn, setup?, teardown?, samples?, warmup?, note? } ]
// `fn` runs one sample; the reported number is (wall time of one sample) / ops, in `unit`.
// A case may instead return its own figure: { value, unit, extra } from `measure()`.
// Cases with the same `series` and a count `k` of middleware (one of them k = 0) also give the
// derived cost of one middleware, per tool round (unit ms, 10 rounds) or per chunk (unit chunks/s).
// `setup` may be async, so never let it return a thenable: put such a thing in a box.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)

export function versionOf(pkg) {
  try {
    return JSON.parse(readFileSync(require.resolve(`${pkg}/package.json`), 'utf8')).version
  } catch {
    // "exports" may hide package.json: walk up from the entry point
    try {
      const roots = require.resolve.paths(pkg) ?? []
      for (const root of roots) {
        try {
          return JSON.parse(readFileSync(join(root, pkg, 'package.json'), 'utf8')).version
        } catch {
          /* next */
        }
      }
    } catch {
      /* none */
    }
    return 'unknown'
  }
}

export const quantile = (sorted, q) => {
  if (sorted.length === 0) return NaN
  const pos = (sorted.length - 1) * q
  const lo = Math.floor(pos)
  const hi = Math.ceil(pos)
  return sorted[lo] + (sorted[hi] - sorted[lo]) * (pos - lo)
}

const SCALE = { us: 1e3, ms: 1, s: 1e-3, ns: 1e6 }

export async function runCase(c, opt) {
  const limit = c.limitMs ?? 60000
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${limit} ms`)), limit)
  })
  try {
    return await Promise.race([timeCase(c, opt), late])
  } finally {
    clearTimeout(timer)
  }
}

async function timeCase(c, opt) {
  const gc = globalThis.gc ?? (() => {})
  const ctx = c.setup ? await c.setup() : undefined
  try {
    if (c.measure) {
      const r = await c.measure(ctx)
      return { id: c.id, group: c.group, note: c.note, series: c.series, k: c.k, samples: 1, ...r }
    }
    const warmup = Math.max(1, Math.round((c.warmup ?? 3) * opt.scale))
    const samples = Math.max(3, Math.round((c.samples ?? 11) * opt.scale))
    const budgetMs = (c.budgetMs ?? 6000) * Math.max(opt.scale, 0.3)
    // Warm up by count and by time: the JIT needs both.
    const warmMs = (c.warmMs ?? 900) * opt.scale
    const warmBegin = performance.now()
    for (let i = 0; i < warmup || (performance.now() - warmBegin < warmMs && i < 400); i++) await c.fn(ctx, i)
    gc()
    const out = []
    const cpu = []
    const begin = performance.now()
    for (let i = 0; i < samples; i++) {
      const c0 = process.cpuUsage()
      const t0 = performance.now()
      await c.fn(ctx, warmup + i)
      out.push(performance.now() - t0)
      const c1 = process.cpuUsage(c0)
      cpu.push((c1.user + c1.system) / 1000)
      if (performance.now() - begin > budgetMs && out.length >= 3) break
    }
    out.sort((a, b) => a - b)
    cpu.sort((a, b) => a - b)
    const per = (ms) => {
      const x = ms * SCALE[c.rate ? 's' : c.unit]
      return c.rate ? c.ops / x : x / (c.ops ?? 1)
    }
    return {
      id: c.id,
      group: c.group,
      note: c.note,
      series: c.series,
      k: c.k,
      unit: c.rate ? `${c.unit}` : c.unit,
      value: per(quantile(out, 0.5)),
      best: per(out[0]),
      p90: per(quantile(out, 0.9)),
      // CPU time of this whole process (all threads): steadier than wall time on a shared machine
      cpu: per(quantile(cpu, 0.5)),
      samples: out.length,
    }
  } finally {
    if (c.teardown) await c.teardown(ctx)
  }
}

export const here = dirname(new URL(import.meta.url).pathname)

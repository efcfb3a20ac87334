import type { GraphPlan } from './graph.ts'
import { type AnyNode, isNode } from './node.ts'
import { END, type Target } from './route.ts'

const ENTITIES: Readonly<Record<string, string>> = {
  '#': '#35;',
  '"': '#quot;',
  '&': '#amp;',
  '<': '#lt;',
  '>': '#gt;',
  '|': '#124;',
}

/** A checked graph as a Mermaid flowchart. Ids are made of names; two that would be the same get `_2`, `_3`. */
export function toMermaid(plan: GraphPlan): string {
  const ids = idsOf(plan)
  const idOf = (target: Target) => (target === END ? 'END' : (ids.get(target as AnyNode) as string))
  const lines = ['flowchart TD', '  START([start])', '  END([end])']
  for (const [node, id] of ids) lines.push(`  ${id}["${label(node.name)}"]`)
  for (const node of plan.start) lines.push(`  START --> ${idOf(node)}`)
  for (const [node, id] of ids)
    lines.push(...waysOf(plan, node).map(([target, arrow]) => `  ${id} ${arrow} ${idOf(target)}`))
  return `${lines.join('\n')}\n`
}

function waysOf(plan: GraphPlan, node: AnyNode): [Target, string][] {
  const chosen = node.goto.map((target): [Target, string] => [resolve(plan, target), '-.->'])
  const exit = plan.exits.get(node)
  if (exit === undefined) return chosen
  if (exit.kind === 'when') return [[exit.then, '-->|"true"|'], [exit.otherwise, '-->|"false"|'], ...chosen]
  const named = [...(exit.kind === 'edges' ? exit.labelled : exit.targets)].map(([key, target]): [Target, string] => [
    target,
    `-->|"${label(String(key))}"|`,
  ])
  const plain: [Target, string][] = exit.kind === 'edges' && exit.plain !== undefined ? [[exit.plain, '-->']] : []
  return [...plain, ...named, ...chosen]
}

const resolve = (plan: GraphPlan, target: Target | string): Target =>
  isNode(target) || target === END ? (target as Target) : (plan.nodes.get(target as string) as AnyNode)

function idsOf(plan: GraphPlan): Map<AnyNode, string> {
  const taken = new Set(['START', 'END', 'end'])
  const ids = new Map<AnyNode, string>()
  for (const node of plan.nodes.values()) {
    const base = node.name.replace(/[^A-Za-z0-9_]/g, '_')
    let id = base
    for (let n = 2; taken.has(id); n++) id = `${base}_${n}`
    taken.add(id)
    ids.set(node, id)
  }
  return ids
}

const label = (text: string) =>
  text.replace(/[#"&<>|]/g, (char) => ENTITIES[char] as string).replace(/\r?\n|\r/g, '#10;')

import type { ASTNode } from '@marcbachmann/cel-js'

/** Macros that go through a list: their first argument names the element, the others are evaluated for each. */
const COMPREHENSIONS = ['all', 'exists', 'exists_one', 'map', 'filter']

/** What is noticed on a walk through an expression. */
export interface Visitor {
  /**
   * A node, before what is in it.
   *
   * @param loops how many comprehensions it stands in.
   */
  node?(node: ASTNode, loops: number): void
  /** A name that is not bound inside the expression. */
  name?(name: string, node: ASTNode): void
}

export const isComprehension = (node: ASTNode): node is ASTNode & { op: 'rcall' } =>
  node.op === 'rcall' && COMPREHENSIONS.includes(node.args[0]) && node.args[2].length > 1

const isBinding = (node: ASTNode): node is ASTNode & { op: 'rcall' } =>
  node.op === 'rcall' && node.args[0] === 'bind' && node.args[1].op === 'id' && node.args[1].args === 'cel'

/** Walks through an expression from the outside in. */
export function walk(node: ASTNode, visitor: Visitor, bound: ReadonlySet<string> = new Set(), loops = 0): void {
  visitor.node?.(node, loops)
  if (node.op === 'id') {
    if (!bound.has(node.args)) visitor.name?.(node.args, node)
    return
  }
  if (isComprehension(node)) {
    const [, list, [element, ...each]] = node.args
    walk(list, visitor, bound, loops)
    for (const part of each) walk(part, visitor, within(bound, element), loops + 1)
    return
  }
  if (isBinding(node)) {
    const [, , [name, value, rest]] = node.args
    if (value !== undefined) walk(value, visitor, bound, loops)
    if (rest !== undefined) walk(rest, visitor, within(bound, name), loops)
    return
  }
  for (const part of partsOf(node)) walk(part, visitor, bound, loops)
}

const within = (bound: ReadonlySet<string>, name: ASTNode | undefined): ReadonlySet<string> =>
  name?.op === 'id' ? new Set([...bound, name.args]) : bound

function partsOf(node: ASTNode): readonly ASTNode[] {
  switch (node.op) {
    case 'value':
    case 'id':
      return []
    case '.':
    case '.?':
      return [node.args[0]]
    case 'call':
      return node.args[1]
    case 'rcall':
      return [node.args[1], ...node.args[2]]
    case 'map':
      return node.args.flat()
    case '!_':
    case '-_':
      return [node.args]
    default:
      return node.args
  }
}

import type { AnyNode } from './node.ts'

/** Where a graph begins and where a way through it ends. */
export const START: unique symbol = Symbol('START')
export const END: unique symbol = Symbol('END')

export type Target = AnyNode | typeof END

/** One more task of a node in the next superstep, with values of its own laid over the state. */
export class Send {
  readonly node: AnyNode
  readonly payload: { readonly [field: string]: unknown }
  constructor(node: AnyNode, payload: { readonly [field: string]: unknown }) {
    this.node = node
    this.payload = payload
  }
}

/** Sends a task to a node: the payload stands over the state for that one task, and is not stored. */
export const send = (node: AnyNode, payload: { readonly [field: string]: unknown } = {}): Send =>
  new Send(node, payload)

export type Goto = Target | Send | readonly (Target | Send)[]

/**
 * A node's update together with where to go. `goto` takes the place of the node's edges, `[]` leads nowhere, and without it
 * the edges are followed; `branch` chooses the edge with that label.
 */
export class Command<Update = unknown> {
  readonly update: Update | undefined
  readonly goto: Goto | undefined
  readonly branch: string | undefined
  constructor(update: Update | undefined, goto: Goto | undefined, branch: string | undefined) {
    this.update = update
    this.goto = goto
    this.branch = branch
  }
}

export const command = <Update>({
  update,
  goto,
  branch,
}: {
  update?: Update
  goto?: Goto
  branch?: string
}): Command<Update> => new Command(update, goto, branch)

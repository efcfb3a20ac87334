import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { END, graph, node, START, state } from '../index.ts'

const S = state({ n: z.number().default(0) })
const named = (name: string, goto?: readonly (typeof END | string)[]) => node(name, S, () => {}, goto && { goto })
const line = (drawn: string, part: string) =>
  drawn
    .split('\n')
    .find((line) => line.includes(part))
    ?.trim()

describe('a graph as a Mermaid flowchart', () => {
  it('shows plain edges, labelled ways, and dashed arrows for what a node may choose itself', () => {
    const [check, review, reply, log] = [named('check'), named('review', ['check', END]), named('reply'), named('log')]
    const drawn = graph('g', S)
      .edge(START, check)
      .when(check, () => true, { then: review, otherwise: reply })
      .branch(reply, () => 'de', { de: log, en: END })
      .edge(log, END)
      .edge(log, check, { branch: 'again' })
      .check()
      .toMermaid()
    expect(drawn).toBe(`flowchart TD
  START([start])
  END([end])
  check["check"]
  review["review"]
  reply["reply"]
  log["log"]
  START --> check
  check -->|"true"| review
  check -->|"false"| reply
  review -.-> check
  review -.-> END
  reply -->|"de"| log
  reply -->|"en"| END
  log --> END
  log -->|"again"| check
`)
  })
  it('C13: writes what a label could break out with as entities', () => {
    const odd = named('a "b" |c| <d> & #e\nf')
    const drawn = graph('g', S)
      .edge(START, odd)
      .branch(odd, () => 'x', { '"]|': END })
      .check()
      .toMermaid()
    expect(line(drawn, '[')).toBe('START([start])')
    expect(drawn).toContain('["a #quot;b#quot; #124;c#124; #lt;d#gt; #amp; #35;e#10;f"]')
    expect(drawn).toContain('-->|"#quot;]#124;"| END')
  })
  it('C13: makes ids of names, tells equal ones apart, and leaves the reserved ones alone', () => {
    const nodes = ['a b', 'a-b', 'a_b', 'END', 'end', 'START'].map((name) => named(name))
    const builder = graph('g', S)
    for (const [i, from] of nodes.entries()) builder.edge(i === 0 ? START : (nodes[i - 1] as typeof from), from)
    const drawn = builder
      .edge(nodes.at(-1) as (typeof nodes)[0], END)
      .check()
      .toMermaid()
    const ids = [...drawn.matchAll(/^ {2}(\w+)\["/gm)].map(([, id]) => id)
    expect(ids).toEqual(['a_b', 'a_b_2', 'a_b_3', 'END_2', 'end_2', 'START_2'])
  })
})

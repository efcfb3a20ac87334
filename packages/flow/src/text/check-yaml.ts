import type { Document, Node, Pair, Scalar, YAMLMap } from 'yaml'
import type { Path } from '../faults/path.ts'
import type { Report } from '../faults/report.ts'
import { type At, checkKey, MAX_ALIASES } from './limits.ts'

export type Yaml = typeof import('yaml')

/** Checks keys and aliases, and warns of scalars that another YAML reads otherwise. Returns whether the document is usable. */
export function checkYaml(yaml: Yaml, document: Document.Parsed, report: Report): boolean {
  let isUsable = true
  let aliases = 0
  yaml.visit(document, {
    Map(_, map, above) {
      if (!checkKeys(report, map, () => pathOf(yaml, above, map))) isUsable = false
    },
    Scalar(_, scalar, above) {
      warnAboutScalar(report, scalar as Scalar, () => pathOf(yaml, above, scalar))
    },
    Alias(_, alias, above) {
      const target = alias.resolve(document)
      const why =
        ++aliases > MAX_ALIASES
          ? `the document uses more than ${MAX_ALIASES} aliases`
          : target === undefined
            ? `nothing is named "&${alias.source}" before this`
            : above.includes(target)
              ? `"*${alias.source}" contains itself`
              : undefined
      if (why === undefined) return undefined
      isUsable = false
      aliasFault(report, { path: pathOf(yaml, above, alias), offset: startOf(alias) }, why)
      return yaml.visit.BREAK
    },
  })
  return isUsable
}

export function aliasFault(report: Report, { path, ...at }: At, why: string): void {
  report.fault('FLOW_ALIAS', path, `${why}. Use "$referenced_components" with "$component_ref" instead.`, at)
}

export const startOf = (node: Node): number => node.range?.[0] ?? 0

function checkKeys(report: Report, map: YAMLMap, path: () => Path): boolean {
  const seen = new Set<string>()
  let isUsable = true
  for (const { key } of map.items as Pair<Scalar>[]) {
    const name = String(key.value)
    const at = () => ({ path: [...path(), name], offset: startOf(key) })
    if (!checkKey(report, seen, name, at)) isUsable = false
    if (name === '<<' && key.type === 'PLAIN') mergeKey(report, at())
  }
  return isUsable
}

function mergeKey(report: Report, { path, ...at }: At): void {
  report.fault('FLOW_YAML_MERGE', path, 'YAML 1.2 has no merge keys. Write the keys out, or quote this one.', at)
}

/** Plain scalars that YAML 1.1, which Python's tools speak, reads as something else than YAML 1.2. */
const READ_OTHERWISE: readonly { readonly form: RegExp; readonly as: string }[] = [
  { form: /^(?:yes|no|on|off)$/i, as: 'true or false' },
  { form: /^[-+]?0[0-9_]+$/, as: 'a number in base 8' },
  { form: /^\d{4}-\d{1,2}-\d{1,2}(?:[Tt\s].*)?$/, as: 'a date' },
  { form: /^[-+]?[1-9]\d*(?::[0-5]?\d)+$/, as: 'a number in base 60' },
]

function warnAboutScalar(report: Report, scalar: Scalar, path: () => Path): void {
  const { source, type, value } = scalar
  if (type !== 'PLAIN' || source === undefined) return
  const other = READ_OTHERWISE.find(({ form }) => form.test(source))
  if (other === undefined) return
  report.warn(
    'FLOW_YAML_SCALAR',
    path(),
    `${source} without quotes is ${JSON.stringify(value)} here and ${other.as} for other YAML readers. Quote it.`,
    { offset: startOf(scalar) },
  )
}

function pathOf(yaml: Yaml, above: readonly unknown[], node: unknown): Path {
  const trail = [...above, node]
  return trail.flatMap((entry, i): Path => {
    if (yaml.isPair(entry)) return [String((entry.key as Scalar).value)]
    const parent = trail[i - 1]
    return yaml.isSeq(parent) ? [parent.items.indexOf(entry)] : []
  })
}

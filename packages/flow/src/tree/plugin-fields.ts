import { COMMON, NODE } from '../components/descriptor.ts'
import type { Report } from '../faults/report.ts'
import { categoriesOf, type Definition, textOf } from './definition.ts'
import { mismatchOf, missing, wrongType } from './kinds.ts'
import { below, follow, lostReference, REFERENCED } from './placed.ts'
import { checkProperties } from './properties.ts'
import type { Survey } from './survey.ts'

/** Fields that belong to the document, not to the plugin. */
const OF_THE_DOCUMENT = new Set([
  ...Object.keys(COMMON),
  ...Object.keys(NODE),
  'component_type',
  'component_plugin_name',
  'component_plugin_version',
  'agentspec_version',
  'air_version',
  REFERENCED,
])

/** A plugin's own fields are free; its schema judges them when the flow is built. */
export function checkPluginFields(survey: Survey, definition: Definition): void {
  const { report } = survey
  const fields = categoriesOf(definition).includes('node') ? { ...COMMON, ...NODE } : COMMON
  for (const [name, { kind, required }] of Object.entries(fields)) {
    const written = Object.hasOwn(definition.value, name) ? definition.value[name] : undefined
    if (written === undefined || written === null || written === '') {
      if (required) missing(report, definition, name)
      continue
    }
    const placed = below(definition, name)
    const found = follow(placed)
    if ('lost' in found) lostReference(report, placed, found)
    else if (kind.is === 'properties') checkProperties(report, found)
    else {
      const wanted = mismatchOf(kind, found.value)
      if (wanted !== undefined) wrongType(report, found.path, wanted, found.value)
    }
  }
  checkProvider(report, definition)
  for (const name of settingNames(definition)) survey.readFreely(below(definition, name), definition)
}

/** The names of a plugin component's own fields. */
export function settingNames({ value }: Definition): readonly string[] {
  return Object.keys(value).filter((name) => !OF_THE_DOCUMENT.has(name))
}

/** The document may say which plugin it was written for. Another plugin's type of that name is a fault. */
function checkProvider(report: Report, definition: Definition): void {
  const { plugin, type, path } = definition
  const name = textOf(definition, 'component_plugin_name')
  const version = textOf(definition, 'component_plugin_version')
  if (plugin === undefined) return
  if (name !== undefined && name !== plugin.plugin) {
    report.fault(
      'FLOW_PLUGIN_NAME',
      [...path, 'component_plugin_name'],
      `"${type}" is meant to come from plugin "${name}", and plugin "${plugin.plugin}" is loaded for it. Load the one meant.`,
    )
  } else if (version !== undefined && version !== plugin.version) {
    report.warn(
      'FLOW_PLUGIN_VERSION',
      [...path, 'component_plugin_version'],
      `"${type}" was written for version ${version} of plugin "${plugin.plugin}"; ${plugin.version} is loaded.`,
    )
  }
}

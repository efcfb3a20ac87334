import type { Category, Descriptor, Field } from '../components/descriptor.ts'
import type { Definition } from './definition.ts'
import { checkGeneration } from './generation.ts'
import { mismatchOf, missing, wrongType } from './kinds.ts'
import { below, entriesOf, follow, lostReference, type Placed } from './placed.ts'
import { checkPluginFields } from './plugin-fields.ts'
import { checkProperties } from './properties.ts'
import type { Survey } from './survey.ts'
import { checkUnknownField } from './unknown-field.ts'

/** Checks one component by itself, and enlists the components in its fields. */
export function checkFields(survey: Survey, definition: Definition): void {
  const { descriptor } = definition
  if (descriptor === undefined) {
    checkPluginFields(survey, definition)
    return
  }
  if (!descriptor.supported) {
    enlistOnly(survey, definition, descriptor)
    return
  }
  for (const [name, field] of descriptor.fields) {
    const placed = below(definition, name)
    if (Object.hasOwn(definition.value, name)) checkField(survey, definition, name, field, placed)
    else if (field.required) missing(survey.report, definition, name)
  }
  for (const name of Object.keys(definition.value)) {
    if (!descriptor.fields.has(name)) checkUnknownField(survey.report, definition, descriptor, name)
  }
}

const OF_COMPONENTS = new Set(['component', 'components', 'pairs'])

/** Of a type that is refused anyway, only the components inside are looked at, so that each is refused by name too. */
function enlistOnly(survey: Survey, definition: Definition, { fields }: Descriptor): void {
  for (const [name, { kind }] of fields) {
    if (OF_COMPONENTS.has(kind.is)) survey.readFreely(below(definition, name), definition)
  }
}

function checkField(survey: Survey, owner: Definition, name: string, field: Field, placed: Placed): void {
  const { report } = survey
  if (placed.value === null) {
    if (field.required) missing(report, owner, name)
    return
  }
  const { kind } = field
  if (kind.is === 'nodeRef') {
    survey.takes(placed, 'node')
    return
  }
  if (kind.is === 'component') {
    survey.takes(placed, kind.category, owner)
    return
  }
  const found = follow(placed)
  if ('lost' in found) lostReference(report, placed, found)
  else if (kind.is === 'components') eachOf(survey, found, (item) => survey.takes(item, kind.category, owner))
  else if (kind.is === 'pairs') eachOf(survey, found, (pair) => checkPair(survey, owner, pair, kind.category))
  else if (kind.is === 'properties') checkProperties(report, found)
  else {
    const wanted = mismatchOf(kind, entriesOf(found))
    if (wanted !== undefined) wrongType(report, found.path, wanted, found.value)
    else if (kind.is === 'generation') checkGeneration(report, found)
    else if (name === 'name' && found.value === '') missing(report, owner, name)
  }
}

function eachOf(survey: Survey, list: Placed, check: (item: Placed) => void): void {
  if (Array.isArray(list.value)) for (const i of list.value.keys()) check(below(list, i))
  else wrongType(survey.report, list.path, 'a list', list.value)
}

function checkPair(survey: Survey, owner: Definition, pair: Placed, category: Category): void {
  if (!Array.isArray(pair.value) || pair.value.length !== 2) {
    wrongType(survey.report, pair.path, 'a list of two components', pair.value)
    return
  }
  for (const i of [0, 1]) survey.takes(below(pair, i), category, owner)
}

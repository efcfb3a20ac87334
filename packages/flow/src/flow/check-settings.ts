import type { JsonObject } from '@sluice/core'
import { jsonSchema } from '../schema/json-schema.ts'
import type { Definition } from '../tree/definition.ts'
import type { Builder } from './builder.ts'
import { buildPluginComponent } from './settings.ts'

/** Judges the components of plugins by the schemas of their manifests. A validator is loaded only when there is one. */
export async function checkSettings(builder: Builder): Promise<void> {
  for (const definition of builder.survey.definitions.values()) {
    const schema = definition.plugin?.schema
    if (schema !== undefined) await checkOne(builder, definition, schema)
  }
}

async function checkOne(builder: Builder, definition: Definition, schema: JsonObject): Promise<void> {
  const component = builder.once(definition, buildPluginComponent)
  const validator = await jsonSchema(
    schema,
    `the schema of "${definition.type}" in plugin "${definition.plugin?.plugin}"`,
  )
  const result = await validator['~standard'].validate(component?.settings)
  for (const { message, path } of result.issues ?? []) {
    const at = (path ?? []).map((part) => (typeof part === 'object' ? part.key : part) as string | number)
    builder.report.fault(
      'FLOW_SETTINGS',
      [...definition.path, ...at],
      `${definition.type}: ${at.join('.') || 'this'} ${message}.`,
    )
  }
}

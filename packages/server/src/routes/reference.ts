import { Hono } from 'hono'
import { html, raw } from 'hono/html'
import { generateSpecs } from 'hono-openapi'
import type { Env } from '../http/env.ts'

interface Operation {
  readonly summary?: string
  readonly description?: string
  readonly requestBody?: { readonly content?: Readonly<Record<string, { readonly schema?: object }>> }
  readonly parameters?: readonly { readonly name?: string; readonly in?: string; readonly description?: string }[]
  readonly responses?: Readonly<
    Record<
      string,
      { readonly description?: string; readonly content?: Readonly<Record<string, { readonly schema?: object }>> }
    >
  >
}

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
h2{margin:2rem 0 .25rem;font-size:1.1rem}code,pre{font:14px/1.45 ui-monospace,monospace}pre{background:#f4f4f4;padding:.75rem;overflow:auto}
b{display:inline-block;min-width:4.5rem}@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}pre{background:#222}}`

/** The routes for OpenAPI, and the same as a page that needs no script and no network. */
export function referenceRoutes(app: Hono<Env>, version: string): Hono<Env> {
  const specs = () =>
    generateSpecs(app, {
      documentation: {
        openapi: '3.1.0',
        info: { title: 'Sluice', version, description: 'Run flows, answer what they ask, follow what they do.' },
        components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
        // Where the operator names nobody, nobody has to say who they are.
        security: [{ token: [] }, {}],
      },
    })
  return new Hono<Env>()
    .get('/openapi.json', async (ctx) => ctx.json(await specs()))
    .get('/reference', async (ctx) => {
      ctx.header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'")
      const { paths = {}, components } = await specs()
      const operations = Object.entries(paths).flatMap(([path, item]) =>
        Object.entries(item as Readonly<Record<string, Operation>>).map(([method, operation]) => ({
          path,
          method,
          operation,
        })),
      )
      return ctx.html(html`<!doctype html><html lang="en"><meta charset="utf-8"><title>Sluice ${version}</title>
<meta name="viewport" content="width=device-width"><style>${raw(STYLE)}</style><body>
<h1>Sluice ${version}</h1><p>The same as a document for programs: <a href="/openapi.json">/openapi.json</a></p>
${operations.map(sectionOf)}
<h1>Shapes</h1>${Object.entries(components?.schemas ?? {}).map(([name, schema]) => html`<h2 id="${name}">${name}</h2>${jsonOf(schema)}`)}</body></html>`)
    })
}

const sectionOf = ({
  path,
  method,
  operation,
}: {
  readonly path: string
  readonly method: string
  readonly operation: Operation
}) =>
  html`<h2><b>${method.toUpperCase()}</b><code>${path}</code></h2><p>${operation.summary}${operation.description === undefined ? '' : html`<br>${operation.description}`}</p>
${schemasOf(operation.requestBody?.content).map((schema) => html`<p>takes</p>${jsonOf(schema)}`)}
${Object.entries(operation.responses ?? {}).map(([status, { description, content }]) => html`<p>${status}: ${description} ${schemasOf(content).map(linkOf)}</p>`)}`

const schemasOf = (content: Readonly<Record<string, { readonly schema?: object }>> = {}): readonly object[] =>
  Object.values(content).flatMap(({ schema }) => (schema === undefined ? [] : [schema]))

const jsonOf = (schema: object) => html`<pre>${JSON.stringify(schema, undefined, 2)}</pre>`

function linkOf(schema: object) {
  const name = /^#\/components\/schemas\/(\w+)$/.exec((schema as { $ref?: string }).$ref ?? '')?.[1]
  return name === undefined ? '' : html`<a href="#${name}">${name}</a>`
}

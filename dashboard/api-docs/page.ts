import { html } from 'hono/html';
import type { ParameterObject } from 'openapi3-ts/oas31';
import type { OpenApiDocument, OpenApiOperation } from './openapi.ts';
import { prose, schemaHtml } from './schema-html.ts';

interface Listed {
  readonly method: string;
  readonly path: string;
  readonly operation: OpenApiOperation;
}

/** URLs of the built files that the page loads. */
export interface ApiPageFiles {
  readonly style: string;
  readonly script: string;
}

/** Renders the description of the API as a page. Its script only hides routes that do not match a search. */
export async function apiPage(document: OpenApiDocument, files: ApiPageFiles): Promise<string> {
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const base = document.servers[0]?.url ?? '';
  const { schemas } = document.components;
  const sections = document.tags.map(({ name }) => ({
    name,
    routes: all.filter(({ operation }) => operation.tags.includes(name)),
  }));
  const page = await html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${document.info.title}</title>
        <link rel="stylesheet" href="${files.style}" />
        <script type="module" src="${files.script}"></script>
      </head>
      <body>
        <header>
          <h1>${document.info.title}</h1>
          <p>${prose(document.info.description ?? '')}</p>
          <p>
            OpenAPI document: <a href="openapi.json">openapi.json</a>. All paths begin with
            <code>${base}</code>. Authenticate with
            <code>Authorization: Bearer &lt;token&gt;</code>, where the token is
            <code>ADMIN_TOKEN</code> or an admin key.
          </p>
          <form role="search">
            <label>Search the routes <input type="search" name="q" maxlength="100" /></label>
            <button>Find</button>
            <a href="?" hidden>All ${all.length} routes</a> <output></output>
          </form>
          <nav aria-label="Sections">
            ${sections.map(({ name }) => html`<a href="#${name}">${name}</a> `)}
          </nav>
        </header>
        <main>
          ${sections.map(
            ({ name, routes }) =>
              html`<section id="${name}">
                <h2>${name}</h2>
                ${routes.map((listed) => routeHtml(listed, schemas))}
              </section>`,
          )}
          <section id="schemas">
            <h2>schemas</h2>
            ${Object.entries(document.components.schemas).map(
              ([name, schema]) =>
                html`<details id="schema-${name}">
                  <summary><code>${name}</code></summary>
                  ${schemaHtml(schema)}
                </details>`,
            )}
          </section>
        </main>
      </body>
    </html> `;
  return page.toString();
}

function routeHtml(
  { method, path, operation }: Listed,
  schemas: OpenApiDocument['components']['schemas'],
): ReturnType<typeof html> {
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  return html`<article id="${operationId}">
    <h3>
      <a href="#${operationId}"
        ><span class="method">${method.toUpperCase()}</span> <code>${path}</code></a
      >
    </h3>
    <p>${prose(summary)}.</p>
    <p class="note">${prose(description)}</p>
    <pre tabindex="0" role="region" aria-label="curl of ${operationId}">
${curlOf(method, path, operation, schemas)}</pre>
    ${
      parameters.length === 0
        ? ''
        : html`<ul>
            ${parameters.map(parameterHtml)}
          </ul>`
    }
    ${
      requestBody === undefined
        ? ''
        : html`<details>
            <summary>Body${requestBody.required ? '' : ' (optional)'}</summary>
            ${contentHtml(requestBody.content)}
          </details>`
    }
    <details>
      <summary>Responses: ${Object.keys(responses).join(', ')}</summary>
      <dl>
        ${Object.entries(responses).map(
          ([status, answer]) =>
            html`<dt>${status}</dt>
              <dd>${prose(answer.description)} ${contentHtml(answer.content)}</dd>`,
        )}
      </dl>
    </details>
  </article>`;
}

function parameterHtml({
  name,
  in: place,
  required,
  schema,
  description,
}: ParameterObject): ReturnType<typeof html> {
  return html`<li>
    <code>${name}</code> in
    ${place}${required ? '' : ', optional'}${
      description === undefined ? '' : html`: ${prose(description)}`
    }
    ${schemaHtml(schema)}
  </li>`;
}

function contentHtml(
  content: Readonly<Record<string, { readonly schema: unknown }>>,
): ReturnType<typeof html>[] {
  return Object.values(content).map(({ schema }) => schemaHtml(schema));
}

type ComponentSchemas = OpenApiDocument['components']['schemas'];

/** Returns a command that calls a route with the smallest valid body. Names in capitals are placeholders. */
function curlOf(
  method: string,
  path: string,
  { requestBody, security }: OpenApiOperation,
  schemas: ComponentSchemas,
): string {
  const url = `/admin/api${path}`.replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
    name.toUpperCase(),
  );
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const example = content === undefined ? null : exampleOf(content.schema, schemas);
  return [
    `curl${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} "$HEADGATE${url}"`,
    ...(security.length === 0 ? [] : ['-H "authorization: Bearer $ADMIN_TOKEN"']),
    ...(type === undefined ? [] : [`-H 'content-type: ${type}'`]),
    ...(example === null ? [] : [`-d '${JSON.stringify(example)}'`]),
  ].join(' \\\n  ');
}

/** Returns the smallest value that matches a schema: its required fields. */
function exampleOf(given: unknown, schemas: ComponentSchemas): unknown {
  const schema = Object(given) as Readonly<Record<string, unknown>>;
  const { $ref: ref, properties, required, anyOf, oneOf, type, minimum } = schema;
  if (typeof ref === 'string') {
    return exampleOf(schemas[ref.slice(ref.lastIndexOf('/') + 1)], schemas);
  }
  if (schema['const'] !== undefined) return schema['const'];
  const [value] = listOf(schema['enum']);
  if (value !== undefined) return value;
  const [variant] = [...listOf(anyOf), ...listOf(oneOf)];
  if (variant !== undefined) return exampleOf(variant, schemas);
  if (properties !== undefined) {
    const fields = Object(properties) as Readonly<Record<string, unknown>>;
    return Object.fromEntries(
      listOf(required).map((name) => [name, exampleOf(fields[String(name)], schemas)]),
    );
  }
  if (type === 'array') return [];
  if (type === 'boolean') return true;
  if (type === 'integer' || type === 'number') return Math.max(1, Number(minimum ?? 1));
  return type === 'object' ? {} : '…';
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

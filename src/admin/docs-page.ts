import { html } from 'hono/html';
import type {
  OpenApiDocument,
  OpenApiOperation,
  OpenApiParameter,
} from '../contract/admin/openapi.ts';
import { curlOf } from './docs-curl.ts';
import { prose, schemaHtml } from './docs-schema.ts';

interface Listed {
  readonly method: string;
  readonly path: string;
  readonly operation: OpenApiOperation;
}

/** Renders the description of the API as a page without scripts: all of it, or the routes that match a search. */
export async function docsPage(document: OpenApiDocument, search = ''): Promise<string> {
  const all = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  const base = document.servers[0]?.url ?? '';
  const { schemas } = document.components;
  const words = search.toLowerCase().split(/\s+/);
  const found = all.filter((listed) => isFound(listed, words));
  const sections = document.tags
    .map(({ name }) => ({
      name,
      routes: found.filter(({ operation }) => operation.tags.includes(name)),
    }))
    .filter(({ routes }) => routes.length > 0);
  const page = await html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${document.info.title}</title>
        <link rel="stylesheet" href="docs.css" />
      </head>
      <body>
        <header>
          <h1>${document.info.title}</h1>
          <p>${prose(document.info.description)}</p>
          <p>
            OpenAPI document: <a href="openapi.json">openapi.json</a>. All paths begin with
            <code>${base}</code>. Authenticate with
            <code>Authorization: Bearer &lt;token&gt;</code>, where the token is
            <code>ADMIN_TOKEN</code> or an admin key.
          </p>
          <form role="search">
            <label
              >Search the routes <input type="search" name="q" value="${search}" maxlength="100"
            /></label>
            <button>Find</button>
            ${
              search === ''
                ? ''
                : html`<a href="?">All ${all.length} routes</a> ${found.length} found`
            }
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

/** Returns whether all words occur in the name, the path, the parameters or the texts of a route. */
function isFound({ method, path, operation }: Listed, words: readonly string[]): boolean {
  const { operationId, summary, description, parameters } = operation;
  const names = parameters.map(({ name }) => name);
  const text = [method, path, operationId, summary, description, ...names].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
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
}: OpenApiParameter): ReturnType<typeof html> {
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

/** Light or dark, by the reader's system setting. */
export const DOCS_STYLE = `:root { color-scheme: light dark; --line: #8884; --soft: #8882;
  --quiet: light-dark(#555, #aaa); --link: light-dark(#0b57d0, #8ab4f8); }
body { background: Canvas; color: CanvasText; font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h2 { border-bottom: 1px solid var(--line); margin-top: 2.5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 0.25rem; }
h3 a { color: inherit; text-decoration: none; }
p { margin: 0.25rem 0; }
.note, dd, li { color: var(--quiet); }
a { color: var(--link); }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; }
code, pre { font: 0.875rem/1.5 ui-monospace, monospace; }
pre { background: var(--soft); padding: 0.75rem; border-radius: 6px; overflow-x: auto; }
nav a { margin-right: 0.75rem; }
form { margin: 0.75rem 0; }
li p { display: inline; }
input, button { font: inherit; padding: 0.25rem 0.5rem; }
:is(dd, li) > ul { padding-left: 1.25rem; border-left: 2px solid var(--line); list-style: none; }
dt { font-weight: 700; }
article { scroll-margin-top: 1rem; }
:target { outline: 2px solid; outline-offset: 4px; }
`;

import type { OpenApiDocument, OpenApiOperation } from '../contract/admin/openapi.ts';

type ComponentSchemas = OpenApiDocument['components']['schemas'];

/** Returns a command that calls a route with the smallest valid body. Names in capitals are placeholders. */
export function curlOf(
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

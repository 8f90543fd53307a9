import { html } from 'hono/html';

/** A JSON Schema, as far as zod generates it from the contract. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly unit?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
  readonly items?: unknown;
  readonly additionalProperties?: unknown;
  readonly anyOf?: readonly unknown[];
  readonly oneOf?: readonly unknown[];
  readonly allOf?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
}

/**
 * Renders a schema: its fields as a list, each with its type, bounds and description. Names of other schemas are links.
 */
export function schemaHtml(given: unknown): ReturnType<typeof html> {
  const schema = schemaOf(given);
  return html`<p>${typeHtml(schema)}${boundsOf(schema)}</p>
    ${partsHtml(schema)}`;
}

function schemaOf(given: unknown): Schema {
  return Object(given) as Schema;
}

function variantsOf({ anyOf, oneOf, allOf }: Schema): readonly Schema[] {
  return (anyOf ?? oneOf ?? allOf ?? []).map(schemaOf);
}

/** Renders the type of a value in a few words, such as `list of text` or `Group or null`. */
function typeHtml(schema: Schema): ReturnType<typeof html> {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
    return html`<a href="#schema-${name}">${name}</a>`;
  }
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.enum !== undefined) {
    return html`one of <code>${schema.enum.map((value) => JSON.stringify(value)).join(' ')}</code>`;
  }
  const variants = variantsOf(schema);
  if (variants.length > 0) {
    return html`${variants.map((one, at) => html`${at === 0 ? '' : ' or '}${typeHtml(one)}`)}`;
  }
  if (schema.items !== undefined) return html`list of ${typeHtml(schemaOf(schema.items))}`;
  const { type } = schema;
  const types = type === undefined ? ['any'] : [type].flat();
  return html`${types.map((one) => TYPE_WORDS[one] ?? one).join(' or ')}`;
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'text',
  boolean: 'true or false',
  integer: 'whole number',
};

function boundsOf(schema: Schema): string {
  const { minimum, maximum, minLength, maxLength, unit, format } = schema;
  const whole = Number.MAX_SAFE_INTEGER;
  const bounds = [
    format ?? '',
    minimum === undefined || minimum === -whole ? '' : `≥ ${minimum}`,
    maximum === undefined || maximum === whole ? '' : `≤ ${maximum}`,
    minLength === undefined ? '' : `at least ${minLength} characters`,
    maxLength === undefined ? '' : `at most ${maxLength} characters`,
    unit === undefined ? '' : `unit: ${unit}`,
    schema.default === undefined ? '' : `default ${JSON.stringify(schema.default)}`,
  ].filter((bound) => bound !== '');
  return bounds.length === 0 ? '' : ` (${bounds.join(', ')})`;
}

/** Renders text with names of fields and values in backticks. */
export function prose(text: string): ReturnType<typeof html>[] {
  return text
    .split('`')
    .map((part, at) => (at % 2 === 0 ? html`${part}` : html`<code>${part}</code>`));
}

/** Renders the fields of an object, of the items of a list, or of each variant that has some. */
function partsHtml(schema: Schema): ReturnType<typeof html> {
  const { properties, items, additionalProperties } = schema;
  if (properties !== undefined) {
    const { required = [] } = schema;
    const fields = Object.entries(properties);
    return html`<ul>
      ${fields.map(([name, field]) => fieldHtml(name, schemaOf(field), required.includes(name)))}
    </ul>`;
  }
  if (items !== undefined) return partsHtml(schemaOf(items));
  if (typeof additionalProperties === 'object') {
    const each = schemaOf(additionalProperties);
    return html`<ul>
      ${fieldHtml('…', each, false)}
    </ul>`;
  }
  return html`${variantsOf(schema).map(partsHtml)}`;
}

function fieldHtml(name: string, field: Schema, isRequired: boolean): ReturnType<typeof html> {
  return html`<li>
    <code>${name}</code> ${typeHtml(field)}${boundsOf(field)}${isRequired ? ', required' : ''}${
      field.description === undefined ? '' : html`<br />${prose(field.description)}`
    }
    ${partsHtml(field)}
  </li>`;
}

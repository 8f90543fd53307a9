// Step 2: from the shape of another system to ours. check-config.ts lists all steps.
//
// A new shape is an entry of FOREIGN_SHAPES and a file `convert-*.ts` with its `convert`. That takes over what it can,
// and lists the rest in `omitted`, each part with its path in the document. What decides where calls go, or what they
// may cost, is taken over or omitted with the whole entry it belongs to.

import type * as z from 'zod';
import {
  rateLimitSchema,
  rateLimitListSchema,
  rateLimitModelsSchema,
} from '../contract/config/foreign-schemas.ts';
import { convertHermes, HERMES_FIELDS, isHermes } from './convert-hermes.ts';
import { convertPortkey, isPortkeyConfig, PORTKEY_FIELDS } from './convert-portkey.ts';
import { convertConcurrencyGroups } from './convert-concurrency-groups.ts';
import { convertModelList } from './convert-model-list.ts';
import { convertModelsOfAgents, isModelsOfAgents } from './convert-models-of-agents.ts';
import { formatPath } from './field-error.ts';
import { named, refused, type Converted, type Origin } from './foreign-groups.ts';

/** Where a document comes from, as far as the caller knows. */
export interface ForeignSource {
  /** The system that it is of, as `headgate import` names it. Absent: the fields of the document decide. */
  readonly system?: string;
  /** Environment that variables in the document are read from. Absent: none is known. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** The shape of another system's documents. */
interface ForeignShape {
  /** Systems that have it, as `headgate import` names them. */
  readonly systems: readonly string[];
  /** Fields at the top of such a document, at least one of which it has. `list`: the document is a list. */
  readonly fields: readonly string[];
  /** Tells documents of this shape from others with the same fields. Absent: the fields decide. */
  readonly isMeant?: (document: Readonly<Record<string, unknown>>) => boolean;
  readonly convert: (document: unknown, source: ForeignSource) => Converted;
}

/** Every shape that an import takes. The first one that fits a document counts. */
const FOREIGN_SHAPES: readonly ForeignShape[] = [
  {
    systems: ['picoclaw'],
    fields: ['model_list'],
    isMeant: isModelsOfAgents,
    convert: convertModelsOfAgents,
  },
  {
    systems: ['litellm'],
    fields: ['model_list'],
    convert: (document, { env }) => convertModelList(document, env),
  },
  {
    systems: ['clawith'],
    fields: ['concurrency_groups'],
    convert: convertConcurrencyGroups,
  },
  {
    systems: ['hermes'],
    fields: HERMES_FIELDS,
    isMeant: isHermes,
    convert: convertHermes,
  },
  {
    systems: ['portkey'],
    fields: PORTKEY_FIELDS,
    isMeant: isPortkeyConfig,
    convert: convertPortkey,
  },
  { systems: ['picoclaw'], fields: ['list'], convert: convertRateList },
  { systems: ['picoclaw'], fields: ['models'], convert: convertRatesOfModels },
  {
    systems: ['picoclaw'],
    fields: ['rate_limit', 'model'],
    isMeant: ({ model, rate_limit: limit }) => limit !== undefined || typeof model !== 'object',
    convert: convertRate,
  },
];

/** Systems whose documents are imported, as `headgate import` names them. */
export const DOCUMENT_SYSTEMS: readonly string[] = [
  ...new Set(FOREIGN_SHAPES.flatMap(({ systems }) => systems)),
].toSorted();

/** Lists the fields by which the documents of a system are known. */
export function fieldsOfSystem(system: string): string[] {
  return FOREIGN_SHAPES.flatMap(({ systems, fields }) => (systems.includes(system) ? fields : []));
}

/** A shape that fits a document, and the field at its top that says so. */
export interface FittingShape {
  readonly field: string;
  readonly convert: (source: ForeignSource) => Converted;
}

/** Finds the shapes that fit a document, each by a field of its own. */
export function foreignShapesOf(document: unknown, { system }: ForeignSource): FittingShape[] {
  const fields = Array.isArray(document) ? ['list'] : Object.keys(Object(document));
  const taken = new Set<string>();
  return FOREIGN_SHAPES.flatMap((shape) => {
    if (system !== undefined && !shape.systems.includes(system)) return [];
    const field = fields.find((name) => shape.fields.includes(name));
    if (field === undefined || taken.has(field)) return [];
    if (shape.isMeant?.(document as Readonly<Record<string, unknown>>) === false) return [];
    taken.add(field);
    return [{ field, convert: (source: ForeignSource) => shape.convert(document, source) }];
  });
}

function convertRateList(document: unknown): Converted {
  const parsed = rateLimitListSchema.safeParse(document);
  if (!parsed.success) return refused(parsed.error, rateLimitListSchema, document);
  return rateLimits(parsed.data, (index) => [index]);
}

function convertRatesOfModels(document: unknown): Converted {
  const parsed = rateLimitModelsSchema.safeParse(document);
  if (!parsed.success) return refused(parsed.error, rateLimitModelsSchema, document);
  return rateLimits(parsed.data.models, (index) => ['models', index]);
}

function convertRate(document: unknown): Converted {
  const parsed = rateLimitSchema.safeParse(document);
  if (!parsed.success) return refused(parsed.error, rateLimitSchema, document);
  return rateLimits([parsed.data], () => []);
}

/** Makes a group of the limits of each model. */
function rateLimits(
  entries: readonly z.output<typeof rateLimitSchema>[],
  placeOf: (index: number) => (string | number)[],
): Converted {
  const origins = entries.map(({ model, rate_limit: limits }, index): Origin => ({
    path: [...placeOf(index), 'model'],
    title: model,
    group: { match: { models: [model] }, limits },
  }));
  const converted = named(origins);
  if (!converted.ok) return converted;
  const pathOf = (path: string): string => {
    const [, index, field = ''] = /^groups\[(\d+)\](?:\.limits\.(\w+))?/.exec(path) ?? [];
    if (index === undefined) return path;
    return formatPath([
      ...placeOf(Number(index)),
      ...(field === '' ? ['model'] : ['rate_limit', field]),
    ]);
  };
  return { ...converted, pathOf };
}

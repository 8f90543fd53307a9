import type * as z from 'zod';
import { rateLimitSchema, rateLimitListSchema, rateLimitModelsSchema } from './schemas.ts';
import { convertHermes, isHermes } from './hermes/hermes.ts';
import { convertPortkey, isPortkeyConfig } from './portkey/portkey.ts';
import { convertConcurrencyGroups } from './concurrency-groups.ts';
import { convertModelList } from './litellm/litellm.ts';
import { convertModelsOfAgents, isModelsOfAgents } from './agents/agent-models.ts';
import { formatPath } from '../../../src/config/field-error.ts';
import { FOREIGN_FIELDS } from '../../../src/config/own-config.ts';
import { named, refused, type Converted, type Origin } from './groups.ts';

// Conversion of documents of other systems. A new shape is an entry of FOREIGN_SHAPES and a file `convert-*.ts` with
// its `convert`. It converts what it can, and lists the rest in `omitted`, each part with its path in the document. A
// part that decides where calls go or what they may cost is either converted, or omitted with its whole entry.

export interface ForeignSource {
  /** The system of the document, as `headgate import` names it. If absent, the fields of the document decide. */
  readonly system?: string;
  /** Environment for variables in the document. Absent if unknown. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

interface ForeignShape {
  /** Systems with this shape, as `headgate import` names them. */
  readonly systems: readonly string[];
  /** Top-level fields, of which such a document has at least one. `list` means that the document is a list. */
  readonly fields: readonly string[];
  /** Distinguishes documents of this shape from others with the same fields. If absent, the fields decide. */
  readonly isMeant?: (document: Readonly<Record<string, unknown>>) => boolean;
  readonly convert: (document: unknown, source: ForeignSource) => Converted;
}

/** All shapes. The first one that matches a document applies. */
const FOREIGN_SHAPES: readonly ForeignShape[] = [
  {
    systems: ['picoclaw'],
    fields: ['model_list'],
    isMeant: isModelsOfAgents,
    convert: convertModelsOfAgents,
  },
  {
    systems: ['litellm'],
    fields: FOREIGN_FIELDS.litellm,
    convert: (document, { env }) => convertModelList(document, env),
  },
  {
    systems: ['clawith'],
    fields: FOREIGN_FIELDS.clawith,
    convert: convertConcurrencyGroups,
  },
  {
    systems: ['hermes'],
    fields: FOREIGN_FIELDS.hermes,
    isMeant: isHermes,
    convert: convertHermes,
  },
  {
    systems: ['portkey'],
    fields: FOREIGN_FIELDS.portkey,
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

/** Systems whose documents can be imported, as `headgate import` names them. */
export const DOCUMENT_SYSTEMS: readonly string[] = [
  ...new Set(FOREIGN_SHAPES.flatMap(({ systems }) => systems)),
].toSorted();

export function fieldsOfSystem(system: string): string[] {
  return FOREIGN_SHAPES.flatMap(({ systems, fields }) => (systems.includes(system) ? fields : []));
}

/** A shape that matches a document, and the top-level field that identifies it. */
export interface FittingShape {
  readonly field: string;
  readonly convert: (source: ForeignSource) => Converted;
}

/** Returns the shapes that match a document, each with its own field. */
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

/** Converts the limits of each model to a group. */
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

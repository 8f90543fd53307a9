// Step 2: from the shape of another system to ours. check-config.ts lists all steps.

import type * as z from 'zod';
import {
  rateLimitSchema,
  rateLimitListSchema,
  rateLimitModelsSchema,
} from '../contract/config/foreign-schemas.ts';
import { convertConcurrencyGroups } from './convert-concurrency-groups.ts';
import { convertModelList } from './convert-model-list.ts';
import { convertModelsOfAgents, isModelsOfAgents } from './convert-models-of-agents.ts';
import { formatPath } from './field-error.ts';
import { named, refused, type Converted, type Origin } from './foreign-groups.ts';

const FOREIGN_KEYS = ['concurrency_groups', 'models', 'model', 'rate_limit', 'model_list'];

/** Lists the foreign fields at the top of a document; `['list']` for a document that is a list. */
export function foreignKeys(document: unknown): string[] {
  if (Array.isArray(document)) return ['list'];
  if (typeof document !== 'object' || document === null) return [];
  return Object.keys(document).filter((key) => FOREIGN_KEYS.includes(key));
}

/** Turns a document of one of the foreign shapes into a configuration. */
export function convertForeign(document: unknown): Converted {
  const has = (key: string): boolean =>
    typeof document === 'object' && document !== null && key in document;
  if (has('model_list')) {
    return isModelsOfAgents(document)
      ? convertModelsOfAgents(document)
      : convertModelList(document);
  }
  if (has('concurrency_groups')) return convertConcurrencyGroups(document);
  if (Array.isArray(document)) {
    const parsed = rateLimitListSchema.safeParse(document);
    if (!parsed.success) return refused(parsed.error, rateLimitListSchema, document);
    return rateLimits(parsed.data, (index) => [index]);
  }
  if (has('models')) {
    const parsed = rateLimitModelsSchema.safeParse(document);
    if (!parsed.success) return refused(parsed.error, rateLimitModelsSchema, document);
    return rateLimits(parsed.data.models, (index) => ['models', index]);
  }
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

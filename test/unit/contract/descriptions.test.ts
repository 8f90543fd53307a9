// Every field that an operator writes or reads says what it means, where it is defined.
import { describe, expect, it } from 'vitest';
import { FEED_EVENTS } from '../../../src/contract/group-status.ts';
import { openApiDocument } from '../../../dashboard/api-docs/openapi.ts';
import type { AdminRoute } from '../../../src/admin/route.ts';
import { ADMIN_ROUTES } from '../../../src/admin/routes.ts';
import * as leases from '../../../src/contract/caller-api.ts';
import { callerStatusSchema } from '../../../src/contract/caller-api.ts';
import { configSchema } from '../../../src/contract/config/config.ts';
import { fieldsWithin } from './schema-walk.ts';

const CONFIG = [...fieldsWithin(configSchema)];

const ROUTES = Object.entries<AdminRoute>(ADMIN_ROUTES).map(([name, route]) => {
  const parts = [
    ...(['params', 'query', 'body'] as const).map((part) => [part, route[part]] as const),
    ...Object.entries(route.answers),
  ];
  return {
    name,
    fields: parts.flatMap(([part, schema]) =>
      schema === undefined || schema === 'text'
        ? []
        : [...fieldsWithin(schema)].map((field) => ({ ...field, path: `${part} ${field.path}` })),
    ),
  };
});

const EVENTS = Object.entries(FEED_EVENTS).map(([name, schema]) => ({
  name: `event ${name}`,
  fields: [...fieldsWithin(schema)],
}));

const ALL = [
  { name: 'the configuration', fields: CONFIG },
  ...ROUTES,
  ...EVENTS,
  { name: 'GET /status', fields: [...fieldsWithin(callerStatusSchema)] },
  ...Object.entries(leases).flatMap(([name, schema]) =>
    typeof schema === 'object' ? [{ name, fields: [...fieldsWithin(schema)] }] : [],
  ),
];

describe('every field', () => {
  it.each(ALL)('has a description: $name', ({ fields }) => {
    const without = fields.filter(({ description }) => description === undefined);
    expect(without.map(({ path }) => path)).toEqual([]);
  });

  it.each(ALL)('is described in a sentence: $name', ({ fields }) => {
    const unfinished = fields.filter(({ description = '.' }) => !/[.…]$/.test(description));
    expect(unfinished.map(({ path }) => path)).toEqual([]);
  });

  it.each(ALL)('names its unit where its name has one: $name', ({ fields }) => {
    const unit = { ms: 'ms', s: 's', usd: 'USD', tokens: 'tokens' };
    const wrong = fields.filter(({ path, unit: said, isNumber }) => {
      const suffix = /_(ms|s|usd|tokens)$/.exec(path)?.[1] as keyof typeof unit | undefined;
      return isNumber && suffix !== undefined && !path.endsWith('per_s') && said !== unit[suffix];
    });
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });
});

describe('the configuration', () => {
  it('is walked to its leaves', () => {
    const paths = CONFIG.map(({ path }) => path);
    for (const path of [
      'groups[].limits.budget_usd.fallback_price.input',
      'groups[].on_saturated.spill_to[].model',
      'upstreams[].prices{}.cache_read',
      'keys[].previous.expires_at',
      'webhook.secret',
    ]) {
      expect(paths).toContain(path);
    }
  });

  it('names the unit of every number', () => {
    const without = CONFIG.filter(
      ({ path, isNumber, unit }) => isNumber && unit === undefined && !path.endsWith('.weights'),
    );
    expect(without.map(({ path }) => path)).toEqual([]);
  });
});

describe('the OpenAPI document', () => {
  it('shows description, unit and default of a field', () => {
    const { Group } = openApiDocument().components.schemas;
    expect(Group).toMatchObject({
      properties: {
        queue: {
          properties: {
            timeout_ms: {
              description: expect.stringContaining('How long a call may wait'),
              unit: 'ms',
              default: 240_000,
              maximum: 3_600_000,
            },
          },
        },
      },
    });
  });
});

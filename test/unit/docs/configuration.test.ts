// docs/configuration.md against the schema: every field stands there with its default, and no other does.
import { readFileSync } from 'node:fs';
import type * as z from 'zod';
import { describe, expect, it } from 'vitest';
import { fieldsOf } from '../../../dashboard/src/model/schema-fields.ts';
import { configSchema } from '../../../src/contract/config/config.ts';
import { autoGroupSchema, groupSchema } from '../../../src/contract/config/group.ts';
import { adminKeySchema, gatewayKeySchema } from '../../../src/contract/config/keys.ts';
import { upstreamSchema } from '../../../src/contract/config/upstream-config.ts';

const PAGE = readFileSync('docs/configuration.md', 'utf8');

/** A field of a table, and the default beside it. */
interface ConfigurationRow {
  readonly path: string;
  readonly said: string;
}

/** Rows of the table under a heading. One row may be about several fields, each with its default or with one for all. */
function rowsUnder(heading: string): ConfigurationRow[] {
  const section = PAGE.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  const [, table = ''] = /^\| field \|.*\n\|[-|]+\n((?:\|.*\n)+)/m.exec(section) ?? [];
  return [...table.matchAll(/^\| ([^|]*) \| ([^|]*) \|/gm)].flatMap(([, cell = '', said = '']) => {
    const names = [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
    const base = names[0]?.replace(/\.[^.]*$/, '') ?? '';
    const each = said.split(', ');
    return names.map((name, at) => ({
      path: name.startsWith('.') ? base + name : name,
      said: (names.length > 1 && each.length === names.length ? each[at] : said) ?? '',
    }));
  });
}

/** A default as the page writes it, or null where it only tells of one. */
function defaultFrom(said: string): unknown {
  if (said === 'required') return undefined;
  const text = said.replace(/^`(.*)`$/, '$1').replace(/ ms$/, '');
  const number = Number(text.replaceAll(',', ''));
  if (!Number.isNaN(number)) return number;
  if (/^\[\w.*\]$/.test(text)) return text.slice(1, -1).split(', ');
  return /^(null|true|false|\[\]|\{\}|"")$/.test(text) ? JSON.parse(text) : text;
}

const TABLES: readonly (readonly [string, z.ZodObject])[] = [
  ['The document', configSchema],
  ['Groups', groupSchema],
  ['Upstreams', upstreamSchema],
  ['Keys', gatewayKeySchema],
];

describe.each(TABLES)('the table of %s', (heading, schema) => {
  const rows = rowsUnder(heading);
  // A form shows null for what may be null; the default of a field that may be left out is none at all.
  const fields = fieldsOf(schema).map((field) => {
    const top = schema.shape[field.path];
    return top === undefined ? field : { ...field, fallback: top.safeParse(undefined).data };
  });
  const isWithin = (path: string, whole: string) => path === whole || path.startsWith(`${whole}.`);

  it('has every field of the schema', () => {
    const missing = fields.filter(({ path }) => !rows.some((row) => isWithin(path, row.path)));
    expect(missing.map(({ path }) => path)).toEqual([]);
  });

  it('has no field that is not in the schema, and none twice', () => {
    const paths = rows.map(({ path }) => path);
    expect(paths).toEqual([...new Set(paths)]);
    const unknown = rows.filter((row) => !fields.some(({ path }) => isWithin(path, row.path)));
    expect(unknown.map(({ path }) => path)).toEqual([]);
  });

  it('says the defaults of the schema', () => {
    const wrong = rows.flatMap(({ path: whole, said }) =>
      fields
        .filter(({ path }) => isWithin(path, whole))
        // Words instead of a default: it depends on what is built in, or is that of all fields within.
        .filter(({ path, fallback }) =>
          path === whole ? fallback !== undefined || said === 'required' : said.startsWith('`'),
        )
        .filter(({ fallback }) => JSON.stringify(defaultFrom(said)) !== JSON.stringify(fallback))
        .map(({ path, fallback }) => ({ path, said, fallback })),
    );
    expect(wrong).toEqual([]);
  });
});

describe('what has no table', () => {
  it.each([
    ['admin keys', /^`admin_keys` holds[^]*?\n\n/m, adminKeySchema],
    ['automatic groups', /^### Automatic groups\n[^]*?(?=^### )/m, autoGroupSchema],
    ['the patterns of a group', /^### Matching\n[^]*?(?=^### )/m, groupSchema.shape.match.unwrap()],
  ] as const)('is named in the text: %s', (_name, place, schema) => {
    const [text = ''] = place.exec(PAGE) ?? [];
    const missing = Object.keys(schema.shape).filter(
      (name) => !new RegExp(`\\b${name}\\b`).test(text),
    );
    expect(missing).toEqual([]);
  });
});

// docs/configuration.md against the schema: its tables list every field with its default, and no other field. Its examples are valid.
import { readFileSync } from 'node:fs';
import type * as z from 'zod';
import { describe, expect, it } from 'vitest';
import { fieldsOf } from '../../../dashboard/src/model/schema-fields.ts';
import { configSchema, webhookSchema } from '../../../src/contract/config/config.ts';
import { autoGroupSchema, groupSchema } from '../../../src/contract/config/group.ts';
import { adminKeySchema, gatewayKeySchema, teamSchema } from '../../../src/contract/config/keys.ts';
import { affinitySchema, memberSchema } from '../../../src/contract/config/members.ts';
import { upstreamSchema } from '../../../src/contract/config/upstream.ts';
import { checkConfig } from '../../../src/config/check-config.ts';
import { importConfig } from '../../../packages/import/src/import-config.ts';
import { parseConfigText } from '../../../src/config/parse-text.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';

const PAGE = readFileSync('docs/configuration.md', 'utf8');

/** A field of a table, and the default beside it. */
interface FieldRow {
  readonly path: string;
  readonly said: string;
}

/** The part of the page under a heading of the second or third level, up to the next one of its level. */
function sectionOf(heading: string): string {
  const [, marks = '', rest = ''] =
    new RegExp(`^(##|###) ${heading}\\n([^]*)`, 'm').exec(PAGE) ?? [];
  return rest.split(new RegExp(`^#{2,${marks.length}} `, 'm'))[0] ?? '';
}

/** Rows of all tables of fields under a heading. One row may be about several fields, each with its default or with one for all. */
function rowsUnder(heading: string): FieldRow[] {
  const tables = sectionOf(heading).matchAll(/^\| field \|.*\n\|[-|]+\n((?:\|.*\n)+)/gm);
  const lines = [...tables].flatMap(([, table = '']) => [
    ...table.matchAll(/^\| ([^|]*) \| [^|]* \| ([^|]*) \| [^|]+ \|$/gm),
  ]);
  return lines.flatMap(([, cell = '', said = '']) => {
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
  const text = said.replace(/^`(.*)`$/, '$1');
  const number = Number(text.replaceAll(',', ''));
  if (!Number.isNaN(number)) return number;
  if (/^\[\w.*\]$/.test(text)) return text.slice(1, -1).split(', ');
  return /^(null|true|false|\[\]|\{\}|"")$/.test(text) ? JSON.parse(text) : text;
}

const TABLES: readonly (readonly [string, z.ZodObject])[] = [
  ['The document', configSchema],
  ['Groups', groupSchema],
  ['Members', memberSchema],
  ['Affinity', affinitySchema],
  ['Upstreams', upstreamSchema],
  ['Keys', gatewayKeySchema],
  ['Teams', teamSchema],
  ['Admin keys', adminKeySchema],
  ['Webhook', webhookSchema],
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

it('the text names what an entry of auto_groups holds', () => {
  const text = sectionOf('Automatic groups');
  const missing = Object.keys(autoGroupSchema.shape).filter(
    (name) => !text.includes(`\`${name}\``),
  );
  expect(missing).toEqual([]);
});

/** Whole documents of the page. Those below the last heading are of other systems. */
const EXAMPLES = [
  ...(PAGE.split('\n## Import formats')[0] ?? '').matchAll(/^```yaml\n([^`]*)```/gm),
].map(([, yaml = '']) => yaml);

it('has its examples', () => {
  expect(EXAMPLES.length).toBeGreaterThanOrEqual(3);
});

it.each(EXAMPLES)('an example is a valid configuration: %s', (yaml) => {
  const imported = importConfig(parseConfigText(yaml, 'application/yaml'));
  if (!imported.ok) throw new Error(JSON.stringify(imported.errors));
  const options = { privateUpstreams: false, jurisdiction: null };
  const { errors, warnings } = checkConfig(imported.config, BUILT_IN_UPSTREAMS, options);
  expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
});

it('names every built-in upstream', () => {
  const [, list = ''] = /^Built in: ([^.]*)\.$/m.exec(PAGE) ?? [];
  const names = [...list.matchAll(/`([^`]+)`/g)].map(([, id = '']) => id);
  expect(names).toEqual(BUILT_IN_UPSTREAMS.map(({ id }) => id).toSorted());
});

// Freezes the storage of the Durable Objects: the tables of each class, the constant row names, and the fields of
// stored JSON. Stored data is older than the code, so renaming any of these loses data.
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { EventReader } from '../../support/event-reader.ts';
import { goldenFile, goldenText } from '../../support/golden.ts';
import {
  NO_HOLDS,
  STAGE_TOKEN,
  startStage,
  type LifecycleStage,
} from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

const FILE = fileURLToPath(new URL('../../goldens/storage.txt', import.meta.url));

/** Empty when the golden is written. */
const isUpdate = process.env['UPDATE_SNAPSHOT'] === 'all' || !existsSync(FILE);
const GOLDEN = isUpdate ? '' : await readFile(FILE, 'utf8');

let stage: LifecycleStage;

afterEach(() => stage.close());

/** Columns with constant row names. */
const NAMES_OF_ROWS: Readonly<Record<string, string>> = { memory: 'key', secrets: 'name' };

/** Paths to a configuration or a part of one. Its schema has its own golden. */
const CONFIGURATION =
  /^(?:configuration\.body|versions\.body|memory\.definition|audit_log\.changes\[\]\.(?:from|to))$/;

/** Maps by label values of metrics, which have their own golden. Some keys depend on timing. */
const BY_WORD = new Set([
  'ended',
  'ended_total',
  'figures',
  'lastRefusals',
  'refused',
  'refusals',
  'refusals_total',
  'rejected',
  'rejected_total',
  'waitedFor',
  'waitedForMs',
]);

/** Shapes that are stored in one of several places, depending on timing. */
const SAME_SHAPE: readonly (readonly [RegExp, string])[] = [
  [/^memory\.controls\.bound\b/, 'bound.data'],
  [/^history\.data\b/, 'bound.data.minute'],
  [/^call_log\.data\b/, 'bound.data.calls'],
];

/**
 * Fields whose number depends on timing. Additional ones are ignored; a renamed field fails the test because its old
 * name is missing.
 */
const TIMED = /^(?:bound|costs?|marker|presence|warnings)\.|^memory\.warnings\b/;

/** The objects of a class that have the same tables. */
interface Kind {
  readonly tables: Record<string, string>;
  readonly rows: Set<string>;
  readonly fields: Set<string>;
}

/** Names of classes, which are also the names of their folders. */
const classes = new Set<string>();

const kinds = new Map<string, Kind>();

/** The gateway key of all calls. */
const KEY = 'hg_key_of_a_team';

const limits = { max_concurrency: 1 };

/** A configuration with a group for each upstream except `up-alone`. */
function config({ url }: { readonly url: string }) {
  const names = ['plain', 'rated', 'priced', 'split'];
  const more: Readonly<Record<string, object>> = {
    rated: { limits: { ...limits, rpm: 1_000, rpd: 1_000, tpd: 1_000_000 } },
    priced: { limits: { ...limits, budget_usd: { per_day: 10, per_month: 100 } } },
    split: {
      members: [
        { name: 'm-1', upstream: 'up-split', limits },
        { name: 'm-2', upstream: 'up-plain', limits },
      ],
    },
  };
  const prices = { 'm-1': { input: 100_000, output: 100_000 } };
  return {
    upstreams: [...names, 'alone'].map((name) => ({
      id: `up-${name}`,
      base_url: url,
      ...(name === 'priced' && { prices }),
      ...(name === 'rated' && { limit_headers: 'use' }),
      // Members are used only by calls with the operator's provider key.
      ...(name === 'split' && { auth: { secret: 'UPSTREAM_SPLIT' } }),
    })),
    teams: [{ id: 't-1' }],
    keys: [
      { id: 'k-1', team: 't-1', hash: `sha256:${createHash('sha256').update(KEY).digest('hex')}` },
    ],
    groups: names.map((name) => ({
      name: `g-${name}`,
      match: { upstreams: [`up-${name}`], models: ['m-*'] },
      holds: NO_HOLDS,
      log: { sample: 1 },
      limits,
      ...more[name],
    })),
  };
}

/** Sends a call and reads the response. Calls to a group with members use the operator's provider key. */
async function send(
  path: string,
  json: object,
  headers: Record<string, string> = {},
  signal: AbortSignal | null = null,
): Promise<number> {
  const isSplit = path.startsWith('/up-split');
  const own = isSplit ? {} : { authorization: 'Bearer sk-own' };
  const answer = await fetch(`${stage.url()}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'headgate-key': KEY, ...own, ...headers },
    body: JSON.stringify(json),
    signal,
  });
  await answer.text();
  return answer.status;
}

function chat(upstream: string, ...how: [Record<string, string>?, AbortSignal?]): Promise<number> {
  const json = { model: 'm-1', max_tokens: 2, messages: [{ role: 'user', content: 'hello' }] };
  return send(`/${upstream}/v1/chat/completions`, json, ...how);
}

/** Makes a call wait at a grant to another one, because only then the times and names of queued calls are stored. */
async function queueTwo(named: Record<string, string>): Promise<void> {
  const slow = { 'x-strict-first-byte-delay-ms': '2000' };
  const first = chat('up-plain', slow);
  await stage.admin.untilGroup('g-plain', { in_use: 1 });
  const second = chat('up-plain', { ...slow, ...named });
  await stage.admin.untilGroup('g-plain', { queued: 1 });
  const third = chat('up-plain', named);
  await stage.admin.untilGroup('g-plain', { queued: 2 });
  expect(await first).toBe(200);
  await stage.admin.untilGroup('g-plain', { in_use: 1, queued: 1 });
  await isStored();
  expect(await Promise.all([second, third])).toEqual([200, 200]);
}

/** Makes calls that are served, queued, refused or run in the background, and pauses a group. */
async function use(): Promise<void> {
  const named = { 'headgate-agent': 'a-1', 'headgate-tenant': 't-1', 'headgate-lane': 'high' };
  for (const upstream of ['up-plain', 'up-rated', 'up-split', 'up-alone']) {
    expect(await chat(upstream)).toBe(200);
  }
  // This call spends more than half of a day's budget.
  expect(await chat('up-priced', { 'x-strict-input-tokens': '60', ...named })).toBe(200);
  await queueTwo(named);
  await chat('up-split', { 'x-strict-fail': 'quota', 'headgate-max-wait': '0' });
  await chat('up-plain', { 'x-strict-fail': 'long_window', 'headgate-max-wait': '0' });
  expect(await chat('up-priced', { 'headgate-weight': '9' })).toBe(413);
  const background = { model: 'up-alone/m-1', input: 'x', background: true };
  expect(await send('/v1/responses', background)).toBe(200);
  const paused = await stage.admin.request('POST', '/groups/g-plain/pause', { for_s: 3_600 });
  expect(paused.status).toBe(200);
}

/** Opens the stream of events that the dashboard uses. */
async function watch(): Promise<EventReader> {
  const headers = { authorization: `Bearer ${STAGE_TOKEN}` };
  const { body } = await fetch(`${stage.url()}/admin/api/events?group=g-plain`, { headers });
  if (body === null) throw new Error('no events');
  return new EventReader(body);
}

it('freezes the storage of each class', async () => {
  const rates = { '*': { rpm: 7_000, tpm: 1_000_000 } };
  const upstream = { runs: true, rates, sendsLimitHeaders: true, refuseAs: 'openai' } as const;
  stage = await startStage({ upstream, config, env: { UPSTREAM_SPLIT: 'sk-operator' } });
  const dashboard = await watch();
  await use();
  // Keeps amounts that are reserved in advance on disk.
  const client = new AbortController();
  const held = chat('up-rated', { 'x-strict-first-byte-delay-ms': '200000' }, client.signal);
  // Objects write after they respond, and some rows exist only for a while.
  const isWhole = until('all is stored', isStored, {
    withinMs: 35_000,
    everyMs: 500,
  });
  await isWhole.catch(() => undefined);
  client.abort();
  await held.catch(() => undefined);
  await dashboard.close();
  await expect(goldenText(shown())).toMatchFileSnapshot(goldenFile('storage'));
});

/** Reads a copy of the storage, because a reader could block the writer. Returns whether everything was found. */
async function isStored(): Promise<boolean> {
  const objects = join(stage.dataDir, 'copy');
  await rm(objects, { recursive: true, force: true });
  try {
    await cp(join(stage.dataDir, 'objects'), objects, { recursive: true });
    for (const folder of await readdir(objects)) {
      classes.add(folder);
      const files = await readdir(join(objects, folder));
      for (const file of files.filter((name) => name.endsWith('.sqlite'))) {
        read(folder, join(objects, folder, file));
      }
    }
  } catch {
    // The copy was taken during a write.
    return false;
  }
  return goldenText(shown()) === GOLDEN;
}

function shown(): object {
  const all = [...kinds].map(([kind, { tables, rows, fields }]) => {
    const known = [...fields].filter((field) => isUpdate || !TIMED.test(field) || isKnown(field));
    return [kind, { tables, rows: [...rows].toSorted(), fields: known.toSorted() }];
  });
  return { classes: [...classes].toSorted(), kinds: Object.fromEntries(all) };
}

function isKnown(field: string): boolean {
  return GOLDEN.includes(JSON.stringify(field));
}

/** Adds the tables, rows and fields of one object. */
function read(folder: string, file: string): void {
  const database = new DatabaseSync(file);
  const tables = database
    .prepare(`SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name`)
    .all()
    .map(({ name, sql }) => [String(name), String(sql).replaceAll(/\s+/g, ' ')] as const)
    .filter(([name]) => !name.startsWith('_cf_') && !name.startsWith('sqlite_'));
  if (tables.length > 0) {
    const kind = `${folder}: ${tables.map(([name]) => name).join(' ')}`;
    const known = kinds.get(kind) ?? { tables: {}, rows: new Set(), fields: new Set() };
    Object.assign(known.tables, Object.fromEntries(tables));
    kinds.set(kind, known);
    for (const [name] of tables) {
      for (const row of database.prepare(`SELECT * FROM ${name}`).all()) readRow(name, row, known);
    }
  }
  database.close();
}

function readRow(table: string, row: Readonly<Record<string, unknown>>, to: Kind): void {
  const column = NAMES_OF_ROWS[table];
  const place = column === undefined ? null : `${table}.${String(row[column])}`;
  if (place !== null) to.rows.add(place);
  for (const [name, value] of Object.entries(row)) {
    if (typeof value !== 'string' || !/^[[{]/.test(value)) continue;
    for (const field of fieldsOf(JSON.parse(value), place ?? `${table}.${name}`)) {
      to.fields.add(SAME_SHAPE.reduce((path, [from, as]) => path.replace(from, as), field));
    }
  }
}

/** Lists the fields of a JSON value, also empty ones. Keys that are not field names become `*`. */
function fieldsOf(value: unknown, path: string): string[] {
  if (value === null || typeof value !== 'object' || CONFIGURATION.test(path)) return [path];
  if (Array.isArray(value)) {
    return [`${path}[]`, ...value.flatMap((item) => fieldsOf(item, `${path}[]`))];
  }
  const isByWord = BY_WORD.has(path.slice(path.lastIndexOf('.') + 1));
  const inner = Object.entries(value).flatMap(([key, field]) => {
    const isName = !isByWord && /^[a-z]\w*$/i.test(key);
    return fieldsOf(field, `${path}.${isName ? key : '*'}`);
  });
  return [path, ...inner];
}

// Every reason of `reasons.ts`, each on the real Worker: a refused call is counted with its facts, logged, listed, and a sample of
// the metrics.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { REASON_NAMES } from '../../../src/contract/refusals.ts';
import type { Reason } from '../../../src/contract/reasons.ts';
import { parseExposition } from '../../unit/metrics/exposition-parser.ts';
import { keyHash } from '../sockets/client.ts';
import { NO_COOLDOWN } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, configure, until } from '../support/worker.ts';
import { ALICE, BARRED, GONE, reasonOf, ROWS, type RefusalsRowsPosition } from './rows.ts';

const scopes = new Map<Reason, Strict>();
const lines: Record<string, unknown>[] = [];

function placeOf(reason: Reason): RefusalsRowsPosition {
  const name = reason.replaceAll('_', '-');
  const strict = scopes.get(reason);
  if (strict === undefined) throw new Error(reason);
  const upstream = `u-${name}`;
  return { upstream, group: `g-${name}`, chat: `/${upstream}/v1/chat/completions`, strict };
}

beforeAll(async () => {
  vi.spyOn(console, 'log').mockImplementation((line: string) => {
    if (line.startsWith('{')) lines.push(JSON.parse(line));
  });
  const limits = { limit: 20, turnLimit: 20 };
  await Promise.all(
    REASON_NAMES.map(async (reason) => scopes.set(reason, await strictScope('every', limits))),
  );
  const places = REASON_NAMES.map((reason) => ({ ...placeOf(reason), row: ROWS[reason] }));
  const hashes = await Promise.all([ALICE, GONE, BARRED].map(keyHash));
  const [alice = '', gone = '', barred = ''] = hashes;
  const revoked = { revoked_at: '2026-01-01T00:00:00.000Z' };
  await configure({
    upstreams: [
      ...places.map(({ upstream, strict, row }) => ({
        id: upstream,
        base_url: strict.url,
        ...row.upstream,
      })),
      { id: 'twin', base_url: 'https://twin.example', models: ['twin-*'] },
    ],
    groups: [
      ...places.map(({ upstream, group, row }) => ({
        name: group,
        match: { upstreams: [upstream] },
        ...row.group,
        holds: { ...NO_COOLDOWN, ...row.group?.holds },
      })),
      ...[1, 2, 3, 4].map((at) => ({
        name: `more-${at}`,
        match: { upstreams: ['u-too-many-groups'] },
      })),
    ],
    teams: [{ id: 'red' }],
    keys: [
      { id: 'alice', team: 'red', hash: alice },
      { id: 'gone', team: 'red', hash: gone, ...revoked },
      { id: 'barred', team: 'red', groups: ['none'], hash: barred },
    ],
    leases: 'open',
  });
});

afterAll(() => {
  vi.restoreAllMocks();
});

it.each(REASON_NAMES)('%s is told to a caller', async (reason) => {
  expect(await reasonOf(await ROWS[reason].refuse(placeOf(reason)))).toBe(reason);
});

it.each(REASON_NAMES)('%s leaves its trace', async (reason) => {
  const { upstream, group } = placeOf(reason);
  const facts = { key: 'alice', team: 'red', group, upstream, ...ROWS[reason].facts };
  await until(async () => {
    const { json } = await admin('GET', `/refusals?reason=${reason}`);
    expect(json.refusals).toContainEqual(expect.objectContaining({ reason, ...facts }));
  });
  const logged = lines.filter(({ event }) => event === 'call_refused');
  expect(logged).toContainEqual(expect.objectContaining({ reason, ...facts }));
  const headers = { authorization: 'Bearer test-metrics-token' };
  const families = parseExposition(await (await call('/metrics', { headers })).text());
  const labels = Object.fromEntries(
    Object.entries({ reason, ...facts }).map(([name, value]) => [name, value ?? '']),
  );
  const samples = families.flatMap((family) => family.samples);
  expect(samples).toContainEqual(
    expect.objectContaining({ name: 'headgate_refusals_total', labels }),
  );
});

it('the message of each has no key', () => {
  const text = JSON.stringify(lines);
  for (const key of [ALICE, GONE, BARRED]) expect(text).not.toContain(key);
});

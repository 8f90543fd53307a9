// Every reason of `reasons.ts`, each on the real Worker: a refused call is counted with its facts, logged, listed, and a sample of
// the metrics.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { REASON_NAMES, type Reason } from '../../../src/contract/reasons.ts';
import { parseExposition } from '../../unit/metrics/exposition-parser.ts';
import { admin, call, until } from '../support/worker.ts';
import { ALICE, BARRED, GONE, prepareReasons, reasonOf, ROWS, type RefusalTarget } from './rows.ts';

const lines: Record<string, unknown>[] = [];

let placeOf: (reason: Reason) => RefusalTarget;

beforeAll(async () => {
  vi.spyOn(console, 'log').mockImplementation((line: string) => {
    if (line.startsWith('{')) lines.push(JSON.parse(line));
  });
  placeOf = await prepareReasons();
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

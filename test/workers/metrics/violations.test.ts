// An invariant that a pool has broken: what an operator hears of it, and that it would fail any other test.
import { exports } from 'cloudflare:workers';
import { expect, it, vi } from 'vitest';
import type { GroupEvent } from '../../../src/core/events.ts';
import { INVARIANTS, type Invariant } from '../../../src/core/parts/totals.ts';
import { Shell } from '../../../src/group/shell.ts';
import { takeViolations } from '../../support/violations.ts';
import { define, pool, request, take } from '../support/pool.ts';

// The test pool types its exports by a generated file that this project does not keep.
const worker = (exports as unknown as { default: Fetcher }).default;

const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
  worker.fetch(`https://headgate.test${path}`, {
    ...init,
    headers: { authorization: 'Bearer test-admin-token', 'content-type': 'application/json' },
  });

/** Lets `damage` happen to the pool that takes the next event, before that. */
function beforeNextEvent(damage: (shell: Shell) => void): void {
  // oxlint-disable-next-line typescript/unbound-method -- called with its object below
  const { apply } = Shell.prototype;
  vi.spyOn(Shell.prototype, 'apply').mockImplementationOnce(function damaged(
    this: Shell,
    event: GroupEvent,
  ) {
    damage(this);
    apply.call(this, event);
  });
}

async function counts(group: string): Promise<[string, string | undefined][]> {
  const text = await (await ask('/metrics')).text();
  return INVARIANTS.map((invariant) => {
    const series = `headgate_invariant_violations_total{group="${group}",partition="",invariant="${invariant}"} `;
    const line = text.split('\n').find((each) => each.startsWith(series));
    return [invariant, line?.slice(series.length)];
  });
}

const only = (broken: Invariant | null): [string, string][] =>
  INVARIANTS.map((invariant) => [invariant, invariant === broken ? '1' : '0']);

it('each has a series from the start, and one that was broken is counted, logged and warned of', async () => {
  const group = 'broken';
  await ask(`/admin/api/groups/${group}`, {
    method: 'PUT',
    body: '{"limits":{"max_concurrency":2}}',
  });
  await define(group, 2);
  await take(group, 'a', { wait: false });
  await take(group, 'b', { wait: false });
  expect(await counts(group)).toEqual(only(null));
  const logged = vi.spyOn(console, 'log');
  beforeNextEvent(({ state }) => {
    state.slotsInUse -= 1;
    for (const member of state.serving) member.slotsInUse -= 1;
  });
  const third = await pool(group).acquire(request(group, 'c', { wait: false }));
  expect(third.kind).toBe('granted');
  expect(await counts(group)).toEqual(only('above_limit'));
  expect(takeViolations()).toEqual([expect.stringContaining('"above_limit":1')]);
  const lines = logged.mock.calls.map(([line]) => JSON.parse(String(line)) as { event: string });
  expect(lines.filter(({ event }) => event === 'invariant_violated')).toEqual([
    {
      level: 'error',
      event: 'invariant_violated',
      group,
      partition: null,
      invariant: 'above_limit',
      violations: 1,
    },
  ]);
  const [warning] = await pool(group).warnings();
  expect(warning).toMatchObject({ kind: 'invariant_violated', figures: { above_limit: 1 } });
  expect(warning?.message).toContain('above_limit (1)');
});

it('an answer that leaves behind no write is noticed', async () => {
  const group = 'unwritten';
  await define(group, 2);
  // As if the batch wrote nothing for who waits: the mark on disk stays where it was.
  beforeNextEvent(({ state }) => {
    Object.defineProperty(state.bound, 'inFlight', { get: () => [], set: () => {} });
  });
  await take(group, 'a');
  expect(takeViolations()).toEqual([expect.stringContaining('"above_mark":1')]);
});

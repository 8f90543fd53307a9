// Two keys of one provider behind one group: what either of them refuses, no SDK hears of.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { countingFetch } from '../support/counting-fetch.ts';
import { groupStatus } from '../support/group-status.ts';
import { startSdkStage, type SdkStage } from '../support/sdk-stage.ts';
import { CALLERS, type SdkCaller } from './callers.ts';

const GATEWAY_KEY = 'hg_for-the-tests-of-members';

/** Slots of each key. */
const SLOTS = 4;

/** Every upstream has two keys of its own, as what one call learns of a key holds for the next. */
const UPSTREAMS = CALLERS.map(({ upstream, name }, index) => ({
  id: `${upstream}-${index}`,
  of: name,
  dialect: upstream,
  keys: [`sk-a-of-${index}`, `sk-b-of-${index}`] as const,
}));

const secretOf = (id: string, letter: 'A' | 'B'): string =>
  `UPSTREAM_${id.toUpperCase().replaceAll('-', '_')}_${letter}`;

let stage: SdkStage;
beforeAll(async () => {
  stage = await startSdkStage({
    upstreams: (strict) =>
      UPSTREAMS.map(({ id, dialect }) => ({ id, base_url: strict.url, dialect })),
    groups: UPSTREAMS.map(({ id }) => ({
      name: id,
      match: { upstreams: [id] },
      members: (['A', 'B'] as const).map((letter) => ({
        upstream: id,
        secret: secretOf(id, letter),
        limits: { max_concurrency: SLOTS },
      })),
    })),
    keys: [
      { id: 'tests', hash: `sha256:${createHash('sha256').update(GATEWAY_KEY).digest('hex')}` },
    ],
    env: Object.fromEntries(
      UPSTREAMS.flatMap(({ id, keys: [a, b] }) => [
        [secretOf(id, 'A'), a],
        [secretOf(id, 'B'), b],
      ]),
    ),
  });
});
afterAll(() => stage.stop());

/** Tells since when the key of a letter gets no calls; fails while it does get them. */
async function outageOf(id: string, letter: 'a' | 'b') {
  const { members = [] } = await groupStatus(stage.url, id);
  const out = members.find((member) => member.id.endsWith(`-${letter}`))?.out ?? null;
  if (out?.reason !== 'unauthorized') throw new Error(`${id} ${letter} is in`);
  return out;
}

/** Asks so often at once, streaming and not, without a retry; returns the statuses that the SDK has seen. */
async function asked(caller: SdkCaller, id: string, times: number): Promise<readonly unknown[]> {
  const counter = countingFetch();
  const ask = {
    origin: `${stage.url}/${id}`,
    model: 'any-model',
    key: GATEWAY_KEY,
    fetch: counter.fetch,
  };
  const all = Array.from({ length: times }, (_, n) =>
    n % 2 === 0 ? caller.ask(ask) : caller.askStreaming(ask),
  );
  for (const text of await Promise.all(all)) expect(text).not.toBe('');
  return counter.sent.map(({ status }) => status);
}

describe.each(CALLERS.map((caller, index) => ({ caller, ...UPSTREAMS[index] })))(
  '$caller.name',
  ({ caller, id = '', keys: [a, b] = ['', ''] }) => {
    const served = (times: number) => Array.from({ length: times }, () => 200);

    test('uses both keys, neither above its limit', async () => {
      stage.strict.configure({ firstByteDelayMs: 20, limitsByKey: { [a]: SLOTS, [b]: SLOTS } });
      expect(await asked(caller, id, 24)).toEqual(served(24));
      const { keys } = stage.strict.stats();
      for (const key of [a, b]) {
        expect(keys[key]?.total).toBeGreaterThan(0);
        expect(keys[key]?.peak).toBeLessThanOrEqual(SLOTS);
      }
    });

    test('hears nothing of a key that takes fewer than was said', async () => {
      stage.strict.configure({ limitsByKey: { [a]: 2 } });
      expect(await asked(caller, id, 24)).toEqual(served(24));
    });

    test('hears nothing of a key that is revoked while it calls', async () => {
      const first = asked(caller, id, 12);
      stage.strict.configure({ byKey: { [a]: { status: 401 } } });
      expect(await first).toEqual(served(12));
      expect(await asked(caller, id, 12)).toEqual(served(12));
      // Out it is once the other key has served a call that this one refused.
      const revoked = await vi.waitFor(
        async () => {
          expect(await asked(caller, id, 4)).toEqual(served(4));
          return outageOf(id, 'a');
        },
        // What was learned of it before may keep calls from it for a while.
        { timeout: 120_000 },
      );
      const callsAtA = (): number => stage.strict.stats().keys[a]?.total ?? 0;
      const before = callsAtA();
      expect(await asked(caller, id, 12)).toEqual(served(12));
      // By now it may have been probed.
      const { probe_at: probeAt } = await outageOf(id, 'a');
      expect(callsAtA() - before).toBe(probeAt === revoked.probe_at ? 0 : 1);
    });
  },
);

// A call leaves an upstream whose first byte does not come in time, where there is another one, and costs nobody a slot.
import { afterAll, describe, expect, it } from 'vitest';
import { NO_COOLDOWN, nothingLeaks, untilStatus } from '../support/pool.ts';
import { KEY, newScene, pathTo, post, served, servedBy, type SpillScene } from './scene.ts';

afterAll(nothingLeaks);

/** A first byte that comes too late, whenever it does. */
const AT_ONCE = { spill_to: ['b'] as const, after_ms: 60_000, first_token_ms: 1 };
/** One that is in time, whenever it comes. */
const AT_LEISURE = { ...AT_ONCE, first_token_ms: 600_000 };

const SILENT = { silentAfterChunks: 0 };
const LATE = { firstByteDelayMs: 300 };

async function total(scene: SpillScene): Promise<[number, number]> {
  const [a, b] = await Promise.all([scene.a.stats(), scene.b.stats()]);
  return [a.total, b.total];
}

describe('a call goes elsewhere', () => {
  it.each([
    ['no header', { firstByteDelayMs: 600_000 }],
    ['headers and no byte of the body', SILENT],
  ])('where the upstream sends %s in time', async (_, settings) => {
    const holds = { ...NO_COOLDOWN, failure_hold_ms: 60_000 };
    const scene = await newScene({ spill: AT_ONCE, groups: { a: { holds } } });
    await scene.a.configure(settings);
    const { by, headers } = await served(scene);
    expect(by).toBe('ab');
    expect(headers.get('headgate-tries')).toBe('2');
    expect(headers.get('headgate-groups')).toBe(scene.name('b'));
    await untilStatus(scene.name('a'), { in_use: 0, cooling: 0, refusals_total: {} });
    expect((await scene.a.stats()).arrivals).toMatchObject([{ state: 'aborted' }]);
  });

  it('with the slot of a group that it is in at both', async () => {
    const scene = await newScene({
      spill: AT_ONCE,
      groups: { c: { match: { models: ['m'] }, limits: { max_concurrency: 1 } } },
    });
    await scene.a.configure(SILENT);
    expect(await servedBy(scene)).toBe('ab');
  });
});

describe('a call stays', () => {
  it('where the first byte is in time, and its answer is whole', async () => {
    const scene = await newScene({ spill: AT_LEISURE });
    await scene.a.configure(LATE);
    expect(await servedBy(scene)).toBe('a');
    const sized = '{"model":"m","messages":[]}';
    const response = await post(pathTo(scene, 'a'), sized, KEY);
    expect([response.status, await response.json()]).toMatchObject([200, { model: 'm' }]);
  });

  it('where the field is not set, or there is nowhere else', async () => {
    const scene = await newScene({ spill: { spill_to: ['b'], after_ms: 60_000 } });
    await scene.a.configure(LATE);
    expect(await servedBy(scene)).toBe('a');
    const other = await newScene({ spill: AT_ONCE });
    await other.a.configure(SILENT);
    await other.b.configure(LATE);
    expect(await servedBy(other)).toBe('ab');
  });

  it('whose body was too large to be kept', async () => {
    const groups = { a: { retries: { max_body_bytes: 100 } } };
    const scene = await newScene({ spill: AT_ONCE, groups });
    await scene.a.configure(LATE);
    const messages = [{ role: 'user', content: 'x'.repeat(200) }];
    const response = await post(pathTo(scene, 'a'), JSON.stringify({ model: 'm', messages }), KEY);
    expect(response.status).toBe(200);
    await response.text();
    expect(await total(scene)).toEqual([1, 0]);
  });
});

describe('events before the first content are no first token', () => {
  it('where a call spills', async () => {
    const scene = await newScene({ spill: { ...AT_ONCE, first_token_ms: 1_500 } });
    await scene.a.configure({ atContent: true, silentAfterChunks: 0 });
    expect(await servedBy(scene)).toBe('ab');
    await untilStatus(scene.name('a'), { in_use: 0, refusals_total: {} });
  });
});

// A call that is refused for where it comes from was not served: it goes on to who is reached another way, and
// nowhere else.
import { afterAll, describe, expect, it } from 'vitest';
import { nothingLeaks, untilStatus } from '../support/pool.ts';
import { call, change, env, type WorkerOpenCall } from '../support/worker.ts';
import {
  ask,
  heardBy,
  hold,
  KEY,
  letGo,
  newScene,
  pathTo,
  served,
  type SpillScene,
} from './scene.ts';

afterAll(nothingLeaks);

const SPILL = { spill_to: ['b', 'c'] as const, after_ms: 60_000 };
const REFUSED = { egressRefused: 'address' };

/** Reads what a caller hears that nobody serves, and who has heard of its call. */
async function refused(at: SpillScene): Promise<readonly unknown[]> {
  const json = { model: 'm', messages: [{ role: 'user', content: 'call' }] };
  const response = await call(pathTo(at, 'a'), { json, headers: KEY });
  const said = [response.status, response.headers.get('x-should-retry'), await response.text()];
  return [...said, await heardBy(at, 'call')];
}

const SAID = '{"error":{"type":"forbidden","message":"Request not allowed"}}';

it.each(['region', 'address', 'edge_code', 'edge_json', 'challenge', 'block'])(
  'a call is served elsewhere, and its slot is free at once: %s',
  async (egressRefused) => {
    const holds = { failure_hold_ms: 60_000 };
    const at = await newScene({ spill: SPILL, groups: { a: { retries: { max: 2 }, holds } } });
    await at.a.configure({ egressRefused });
    const { by, headers } = await served(at);
    expect(by).toBe('ab');
    expect(headers.get('headgate-tries')).toBe('2');
    expect(headers.get('headgate-groups')).toBe(at.name('b'));
    await untilStatus(at.name('a'), { in_use: 0, cooling: 0, refusals_total: { egress: 1 } });
  },
);

it('where all refuse it, its caller hears what the last one said', async () => {
  const at = await newScene({ spill: SPILL, settings: REFUSED });
  expect(await refused(at)).toEqual([403, 'false', SAID, 'abc']);
});

describe('it never goes to the same address again', () => {
  it('under the name of another upstream, or with another model', async () => {
    const spill = {
      spill_to: [{ upstream: 'a', model: 'small' }, 'b', 'c'] as const,
      after_ms: 60_000,
    };
    const at = await newScene({ spill, sharing: { b: 'a' } });
    await at.a.configure(REFUSED);
    const json = { model: 'm', messages: [{ role: 'user', content: 'call' }] };
    const response = await call(pathTo(at, 'a'), { json, headers: KEY });
    expect(response.status).toBe(200);
    await response.text();
    expect(await heardBy(at, 'call')).toBe('ac');
  });

  it('not even where it has gone elsewhere in between', async () => {
    const at = await newScene({ spill: SPILL, sharing: { c: 'a' } });
    await at.a.configure(REFUSED);
    await at.b.failNext('error');
    expect(await refused(at)).toEqual([500, null, expect.anything(), 'ab']);
  });

  describe('nor where a change of the configuration has it routed anew while it waits elsewhere', () => {
    /** Has a call wait at `b`, which `a` has refused. */
    async function waitingAtB(
      at: SpillScene,
    ): Promise<{ holder: WorkerOpenCall; one: WorkerOpenCall }> {
      await at.a.configure(REFUSED);
      const holder = await hold(at, 'b');
      const one = ask(at, 'call');
      await untilStatus(at.name('b'), { queued: 1 });
      return { holder, one };
    }

    it('where it waits again', async () => {
      const at = await newScene({ spill: SPILL });
      const { holder, one } = await waitingAtB(at);
      await change('PUT', `/groups/new-${at.name('a')}`, { match: { models: ['new'] } });
      await letGo(at, holder);
      expect([(await one.response).status, await one.end]).toEqual([200, 'done']);
      expect(await heardBy(at, 'call')).toBe('ab');
    });

    it('and nowhere, if there is nowhere else any more', async () => {
      const at = await newScene({ spill: SPILL });
      const { holder, one } = await waitingAtB(at);
      await change('PUT', `/groups/${at.name('a')}`, { match: { upstreams: [at.name('a')] } });
      await change('PUT', `/groups/new-${at.name('a')}`, { match: { models: ['new'] } });
      const { status, headers } = await one.response;
      expect([status, headers.get('headgate-reason')]).toEqual([502, 'upstream_unreachable']);
      expect(await heardBy(at, 'call')).toBe('a');
      await letGo(at, holder);
    });
  });

  it('and with nowhere else to go its caller hears what the upstream said', async () => {
    const at = await newScene({ spill: SPILL, sharing: { b: 'a', c: 'a' } });
    await at.a.configure(REFUSED);
    expect(await refused(at)).toEqual([403, 'false', SAID, 'a']);
  });

  it('but for a way that is another: through a binding', async () => {
    const at = await newScene({
      spill: SPILL,
      sharing: { b: 'a' },
      upstreams: { b: { via: 'OTHER_WAY' } },
    });
    await at.a.configure(REFUSED);
    const binding = {
      fetch: (url: string, init: RequestInit) => fetch(url.replace(at.a.url, at.b.url), init),
    };
    Object.assign(env, { OTHER_WAY: binding });
    expect((await served(at)).by).toBe('ab');
  });
});

it('after another refusal it may be the same address: another account, another model', async () => {
  const at = await newScene({ spill: SPILL, sharing: { b: 'a' } });
  await at.a.failNext('quota');
  expect((await served(at)).by).toBe('aa');
});

// Groups with members are not left for a place that they take calls of themselves: their limits, pauses and budgets are
// over all their members, and a call that none of these can take goes on to another group.
import { afterAll, describe, expect, it } from 'vitest';
import { nothingLeaks, untilStatus } from '../support/pool.ts';
import { open, until, type WorkerOpenCall } from '../support/worker.ts';
import {
  ask,
  KEY,
  keysAt,
  newScene,
  SECRETS,
  servedAt,
  type MembersScene,
} from '../proxy/members-scene.ts';

afterAll(nothingLeaks);

/** Group of the called upstream that sends the calls of a model on, under a name that the group with members has too. */
const SENDS_ON = {
  members: [{ secret: 'UPSTREAM_A' as const }],
  upstreams: { here: { auth: { secret: 'UPSTREAM_B' } } },
  beside: (id: MembersScene['id']) => [
    {
      name: `sends-on-${id('here')}`,
      match: { upstreams: [id('here')] },
      on_saturated: { spill_to: [{ upstream: id('here'), model: 'm-small' }] },
    },
  ],
};

async function modelsAt({ here }: MembersScene): Promise<readonly (string | null)[]> {
  const { arrivals } = await here.stats();
  return arrivals.map(({ model }) => model);
}

/** Holds a slot until the upstream goes on. */
async function hold(at: MembersScene): Promise<WorkerOpenCall> {
  const headers = { ...KEY, 'x-strict-silent-after-chunks': '1' };
  const json = { model: 'm', stream: true, messages: [] };
  const holder = open(at.path(), 'holds', { json, headers });
  await until(async () => expect((await at.here.stats()).inFlight).toBe(1));
  return holder;
}

describe('under another name of the model at the same upstream', () => {
  it('a paused group is not left', async () => {
    const at = await newScene({ ...SENDS_ON, group: { paused: true } });
    const headers = { ...KEY, 'headgate-max-wait': '0' };
    const { status } = await ask(at, 'call', { headers });
    expect(status).not.toBe(200);
    expect(await keysAt(at.here)).toEqual([]);
  });

  it('nor a full one: the call waits there', async () => {
    const at = await newScene({ ...SENDS_ON, group: { limits: { max_concurrency: 1 } } });
    const holder = await hold(at);
    const waiting = servedAt(at, 'waits');
    await untilStatus(at.group, { in_use: 1, queued: 1 });
    expect((await at.here.stats()).total).toBe(1);
    await at.here.resume();
    expect([await holder.end, await waiting]).toEqual(['done', `${at.id('here')}:a`]);
    expect([await modelsAt(at), await keysAt(at.here)]).toEqual([
      ['m', 'm'],
      [SECRETS.UPSTREAM_A, SECRETS.UPSTREAM_A],
    ]);
  });
});

it('a call that has come to such a group goes to no other place of it', async () => {
  const at = await newScene({
    ...SENDS_ON,
    group: { limits: { max_concurrency: 1 } },
    beside: (id) => [
      {
        name: `comes-${id('here')}`,
        match: { models: ['x'] },
        paused: true,
        on_saturated: {
          spill_to: ['m', 'm-small'].map((model) => ({ upstream: id('here'), model })),
        },
      },
    ],
  });
  const holder = await hold(at);
  const json = { model: 'x', messages: [] };
  const waiting = servedAt(at, 'comes', { path: at.path('there'), json });
  await untilStatus(at.group, { in_use: 1, queued: 1 });
  await at.here.resume();
  expect([await holder.end, await waiting]).toEqual(['done', `${at.id('here')}:a`]);
  expect(await modelsAt(at)).toEqual(['m', 'm']);
});

describe('to a group whose members have all the keys', () => {
  const goesOn = (group: { match?: { keys: string[]; models: string[] } } = {}) =>
    newScene({
      members: [{ secret: 'UPSTREAM_A' }],
      group,
      beside: (id) => [
        {
          name: `from-${id('there')}`,
          match: { models: ['x'] },
          paused: true,
          on_saturated: { spill_to: [{ upstream: id('here'), model: 'm' }] },
        },
      ],
    });
  const json = { model: 'x', messages: [] };

  it("a call goes on, with a member's key and without its caller's", async () => {
    const at = await goesOn();
    for (const own of [{}, { authorization: 'Bearer sk-of-the-caller-816' }]) {
      const init = { path: at.path('there'), json, headers: { ...KEY, ...own } };
      expect(await servedAt(at, 'comes', init)).toBe(`${at.id('here')}:a`);
    }
    expect(await keysAt(at.here)).toEqual([SECRETS.UPSTREAM_A, SECRETS.UPSTREAM_A]);
  });

  it('and not where its caller has no part in that group', async () => {
    const at = await goesOn({ match: { keys: ['another'], models: ['m'] } });
    const headers = { ...KEY, authorization: 'Bearer sk-of-the-caller-816' };
    const more = {
      path: at.path('there'),
      json,
      headers: { ...headers, 'headgate-max-wait': '0' },
    };
    expect((await ask(at, 'stays', more)).status).not.toBe(200);
    expect((await at.here.stats()).total).toBe(0);
  });
});

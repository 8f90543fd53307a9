// Calls that nobody configured a group for go elsewhere as well, also with a key of their own.
import { afterAll, beforeEach, expect, it } from 'vitest';
import { refusal } from '../order/scene.ts';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { configure } from '../support/worker.ts';
import { CHAT, post } from './scene.ts';

afterAll(nothingLeaks);

const OWN_KEY = 'sk-of-the-caller-816';
const HEADERS = { authorization: `Bearer ${OWN_KEY}` };
const BODY = '{"model":"m","messages":[]}';

let scenes = 0;
let id = '';
let own: Strict;
let house: Strict;

type Does = 'reject' | { spill_to: { upstream: string; model: string }[] };

/** An upstream whose automatic group is stopped, so that no call finds room there. */
async function configureStopped(does: Does, more: object = {}): Promise<void> {
  await configure({
    upstreams: [
      { id, base_url: own.url },
      { id: `${id}-house`, base_url: house.url, auth: 'none' },
    ],
    auto_groups: [{ name: `auto:${id}`, paused: true, on_saturated: does, ...more }],
  });
}

beforeEach(async () => {
  scenes += 1;
  id = `auto-${scenes}`;
  [own, house] = await Promise.all([strictScope('own'), strictScope('house')]);
  await house.configure({ echo: true });
});

const TO_HOUSE = () => ({ spill_to: [{ upstream: `${id}-house`, model: 'there' }] });

it('to an upstream that takes no key, under its name for the model', async () => {
  await configureStopped(TO_HOUSE());
  const response = await post(`/${id}${CHAT}`, BODY, HEADERS);
  expect(response.status).toBe(200);
  expect(response.headers.get('headgate-groups')).toBe(`auto:${id}-house`);
  expect(await response.text()).not.toContain(OWN_KEY);
  expect((await house.stats()).arrivals).toMatchObject([{ model: 'there' }]);
  expect((await own.stats()).total).toBe(0);
});

it('after a refusal as well', async () => {
  await configureStopped(TO_HOUSE(), { paused: false });
  await own.failNext('quota');
  const response = await post(`/${id}${CHAT}`, BODY, HEADERS);
  expect([response.status, (await house.stats()).total]).toEqual([200, 1]);
  await response.text();
});

it('or are refused at once', async () => {
  await configureStopped('reject');
  const reported = refusal(post(`/${id}${CHAT}`, BODY, HEADERS));
  expect(await reported).toMatchObject({ status: 503, reason: 'paused' });
});

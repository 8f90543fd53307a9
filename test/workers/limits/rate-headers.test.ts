// What callers are told of the limits that they have here: exact with each call, nothing without limits, and never in the
// place of what the upstream says of its own.
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { gatewayKeyHash } from '../../../src/runtime/secrets.ts';
import { NO_COOLDOWN, nothingLeaks } from '../support/pool.ts';
import { stopTime } from '../support/time.ts';
import { configure } from '../support/worker.ts';
import { newStage, send, type LimitsStage } from './stage.ts';

afterAll(nothingLeaks);

type RateHeadersReply = Record<string, string>;

// What was taken a minute ago counts no longer.
beforeEach(stopTime);

async function reported(
  stage: LimitsStage,
  label: string,
  headers: RateHeadersReply = {},
  stream = false,
): Promise<RateHeadersReply> {
  const one = send(stage, label, { headers, stream });
  const answer = await one.response;
  expect(answer.status).toBe(200);
  await one.end;
  return saidOn(answer);
}

/** Reads what a call that does not want to wait is told with its refusal. */
async function refused(
  stage: LimitsStage,
  label: string,
  headers: RateHeadersReply = {},
): Promise<RateHeadersReply> {
  const one = send(stage, label, { headers: { 'headgate-max-wait': '0', ...headers } });
  const answer = await one.response;
  expect(answer.status).toBe(429);
  expect(answer.headers.get('headgate-reason')).not.toBeNull();
  await one.end;
  return saidOn(answer);
}

function saidOn({ headers }: Response): RateHeadersReply {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('x-ratelimit-')));
}

describe('a call of a group with rates', () => {
  it('is told what is left of the requests of a minute, down to nothing', async () => {
    const stage = await newStage({ group: { limits: { rpm: 3, burst: 1 } } });
    for (const left of ['2', '1', '0']) {
      const said = await reported(stage, `left-${left}`);
      expect(said).toMatchObject({
        'x-ratelimit-limit-requests': '3',
        'x-ratelimit-remaining-requests': left,
      });
      expect(said['x-ratelimit-reset-requests']).toMatch(/^(?:1m[0-2]s|5\ds)$/);
      expect(Object.keys(said)).toHaveLength(3);
    }
  });

  it('is told of tokens too, with what it has reserved, and then of what it has used', async () => {
    const settings = { inputTokens: 40, outputTokens: 10 };
    const stage = await newStage({ settings, group: { limits: { tpd: 100_000, rpd: 9 } } });
    const first = await reported(stage, 'one');
    expect(first).toMatchObject({
      'x-ratelimit-limit-requests': '9',
      'x-ratelimit-remaining-requests': '8',
      'x-ratelimit-limit-tokens': '100000',
    });
    const reserved = 100_000 - Number(first['x-ratelimit-remaining-tokens']);
    expect(reserved).toBeGreaterThan(0);
    const second = await reported(stage, 'two');
    expect(second['x-ratelimit-remaining-requests']).toBe('7');
    // The first one's 50, and the estimate of this one.
    const both = 100_000 - Number(second['x-ratelimit-remaining-tokens']);
    expect(both).toBeGreaterThan(50);
    expect(both).toBeLessThanOrEqual(50 + 10 * reserved);
  });

  it('is told the same with a stream', async () => {
    const stage = await newStage({ group: { limits: { rpm: 3, burst: 1 } } });
    expect(await reported(stage, 'stream', {}, true)).toMatchObject({
      'x-ratelimit-remaining-requests': '2',
    });
  });

  it('is told with its refusal that nothing is left, and when all is back', async () => {
    const stage = await newStage({ group: { limits: { rpm: 1, burst: 1 } } });
    await reported(stage, 'last');
    const said = await refused(stage, 'one-more');
    expect(said).toMatchObject({
      'x-ratelimit-limit-requests': '1',
      'x-ratelimit-remaining-requests': '0',
    });
    expect(said['x-ratelimit-reset-requests']).toMatch(/^(?:1m[0-2]s|5\ds)$/);
  });

  it('is told of nothing where the group has none', async () => {
    const stage = await newStage();
    expect(await reported(stage, 'free')).toEqual({});
  });

  it('is told by the upstream alone where that says anything of the kind', async () => {
    const rates = { '*': { rpm: 77, tpm: 1_000_000 } };
    const stage = await newStage({
      settings: { rates, sendsLimitHeaders: true, refuseAs: 'openai' },
      group: { limits: { rpm: 5, itpm: 1_000_000, burst: 1 } },
      upstream: { id: 'openai' },
    });
    expect(await reported(stage, 'theirs')).toMatchObject({
      'x-ratelimit-limit-requests': '77',
      'x-ratelimit-remaining-requests': '76',
      'x-ratelimit-limit-tokens': '1000000',
    });
  });
});

it("a key's own limits go before those of the group that it shares", async () => {
  const stage = await newStage();
  await configure({
    upstreams: [{ id: stage.upstream, base_url: stage.strict.url, auth: 'none' }],
    groups: [
      {
        name: stage.group,
        match: { upstreams: [stage.upstream] },
        limits: { rpm: 100, burst: 1 },
        holds: NO_COOLDOWN,
      },
    ],
    keys: [
      { id: 'few', hash: await gatewayKeyHash('hg_few'), limits: { rpd: 4 } },
      { id: 'many', hash: await gatewayKeyHash('hg_many') },
    ],
  });
  const as = (key: string) => ({ 'headgate-key': key });
  expect(await reported(stage, 'a', as('hg_few'))).toMatchObject({
    'x-ratelimit-limit-requests': '4',
    'x-ratelimit-remaining-requests': '3',
  });
  expect(await reported(stage, 'b', as('hg_many'))).toMatchObject({
    'x-ratelimit-limit-requests': '100',
    'x-ratelimit-remaining-requests': '98',
  });
  for (const label of ['c', 'd', 'e']) await reported(stage, label, as('hg_few'));
  expect(await refused(stage, 'f', as('hg_few'))).toMatchObject({
    'x-ratelimit-limit-requests': '4',
    'x-ratelimit-remaining-requests': '0',
  });
});

it('a key is told of its own limits where a group that it shares has no room', async () => {
  const stage = await newStage();
  await configure({
    upstreams: [{ id: stage.upstream, base_url: stage.strict.url, auth: 'none' }],
    groups: [
      {
        name: stage.group,
        match: { upstreams: [stage.upstream] },
        limits: { rpm: 0 },
        holds: NO_COOLDOWN,
      },
    ],
    keys: [{ id: 'few', hash: await gatewayKeyHash('hg_few'), limits: { rpm: 7 } }],
  });
  expect(await refused(stage, 'g', { 'headgate-key': 'hg_few' })).toMatchObject({
    'x-ratelimit-limit-requests': '7',
  });
});

// Limits that headers tell are kept: shown of the group and of the upstream, also after a reset.
import { afterAll, expect, it } from 'vitest';
import { asAdmin, bodyOf } from '../admin/ask.ts';
import { nothingLeaks, resetPool } from '../support/pool.ts';
import { until } from '../support/worker.ts';
import { newStage, send, statusOf } from './stage.ts';

afterAll(nothingLeaks);

it('what an upstream tells of its limits is shown beside what is suggested, and outlives a reset', async () => {
  const rates = { '*': { rpm: 77, tpm: 123_456 } };
  const stage = await newStage({
    settings: { rates, sendsLimitHeaders: true, refuseAs: 'openai' },
    upstream: { id: 'openai' },
    // A model that no group asks for is not read from the body.
    group: { match: { upstreams: ['openai'], models: ['gpt-*'] } },
  });
  expect(await statusOf(stage)).not.toHaveProperty('limits_seen');
  const one = send(stage, 'one', { model: 'gpt-4o' });
  expect((await one.response).status).toBe(200);
  await one.end;
  const seen = { upstream: 'openai', model: 'gpt-4o', limits: { rpm: 77, tpm: 123_456 } };
  await until(async () => {
    expect((await statusOf(stage)).limits_seen).toMatchObject([seen]);
  });
  const before = (await statusOf(stage)).limits_seen;
  await resetPool(stage.group);
  expect((await statusOf(stage)).limits_seen).toEqual(before);
  const { seen_limits } = bodyOf(
    await asAdmin('GET /upstreams/{id}', { params: { id: 'openai' } }),
  );
  expect(seen_limits).toMatchObject([{ ...seen, group: stage.group }]);
  const { groups } = bodyOf(await asAdmin('GET /status'));
  expect(groups.find(({ name }) => name === stage.group)?.limits_seen).toMatchObject([seen]);
});

it('nothing is kept of headers that are not to be read', async () => {
  const stage = await newStage({
    settings: { rates: { '*': { rpm: 50 } }, sendsLimitHeaders: true, refuseAs: 'openai' },
    upstream: { id: 'openai', limit_headers: 'ignore' },
  });
  const one = send(stage, 'one');
  await one.end;
  expect(await statusOf(stage)).not.toHaveProperty('limits_seen');
});

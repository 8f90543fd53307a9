// An operator's key that is named and not set: who changes the configuration hears of it, and who looks.
import { expect, it } from 'vitest';
import { admin, call, configure, importForeign } from '../support/worker.ts';

const upstream = (secret: string) => ({
  id: 'sealed',
  base_url: 'https://llm.example.com/v1',
  auth: { secret },
});
const NAMED: unknown = expect.arrayContaining([
  'Upstream `sealed`: the secret `UPSTREAM_NOT_SET` is not set. Until it is set, its calls are rejected with `secret_missing`.',
]);

it('is a warning of every change, of its preview, and on the home page', async () => {
  const document = { upstreams: [upstream('UPSTREAM_NOT_SET')] };
  expect((await admin('POST', '/config/preview', document)).json.warnings).toEqual(NAMED);
  expect((await admin('PUT', '/config', document)).json.warnings).toEqual(NAMED);
  const other = { match: { models: ['m'] }, limits: { max_concurrency: 1 } };
  expect((await admin('PUT', '/groups/other', other)).json.warnings).toEqual(NAMED);
  const imported = { concurrency_groups: [{ name: 'i', max_concurrency: 1, models: ['x'] }] };
  expect((await importForeign(imported)).json.warnings).toEqual(NAMED);
  await configure(document);
  expect(await (await call('/')).text()).toContain(
    'MISSING: the secret UPSTREAM_NOT_SET is not set, so calls to sealed are rejected',
  );
});

it('is none once it is set, or its upstream is switched off', async () => {
  for (const document of [
    { upstreams: [upstream('UPSTREAM_TEST_KEY')] },
    { upstreams: [{ ...upstream('UPSTREAM_NOT_SET'), enabled: false }] },
  ]) {
    const { warnings } = (await admin('PUT', '/config', document)).json;
    expect(JSON.stringify(warnings)).not.toContain('UPSTREAM_');
    await configure(document);
    expect(await (await call('/')).text()).not.toContain('MISSING');
  }
});

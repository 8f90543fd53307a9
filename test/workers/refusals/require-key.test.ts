// Which callers need a gateway key, and who would be locked out by requiring one. The upstream says which key it saw.
import { beforeEach, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import type { KeylessCaller, RefusalCount } from '../../../src/contract/reasons.ts';
import { keyHash } from '../sockets/client.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, change, chat, configure, until } from '../support/worker.ts';
import { post } from '../leases/scene.ts';

const KEY = 'hg_key_of_a_team';
const OWN = { authorization: 'Bearer sk-of-a-caller' };
const BOTH = { ...OWN, 'headgate-key': KEY };

let strict: Strict;
let id = '';

async function configured(
  rule: Pick<ConfigInput, 'require_key'>,
  {
    hasKey = true,
    upstream = {},
    more = {},
  }: { hasKey?: boolean; upstream?: object; more?: object } = {},
): Promise<void> {
  const keys = hasKey ? [{ id: 'team', hash: await keyHash(KEY) }] : [];
  await configure({
    ...rule,
    upstreams: [
      { id, base_url: strict.url, models: [`${id}-*`], ...upstream },
      { id: `${id}-other`, base_url: strict.url },
    ],
    groups: [{ name: id, match: { upstreams: [id] } }],
    keys,
    ...more,
  });
}

async function reported(headers: Record<string, string>, upstream = id): Promise<string | number> {
  const path = `/${upstream}/v1/chat/completions`;
  const answer = await chat(path, 'one', {
    headers: { 'content-type': 'application/json', ...headers },
  });
  await answer.body?.cancel();
  return answer.headers.get('headgate-reason') ?? answer.status;
}

beforeEach(async () => {
  strict = await strictScope('require', { limit: 20 });
  id = `r${crypto.randomUUID().slice(0, 6)}`;
});

describe('for the whole configuration', () => {
  it('auto: callers need a key once there is one', async () => {
    await configured({ require_key: 'auto' }, { hasKey: false });
    expect(await reported(OWN)).toBe(200);
    await configured({});
    expect(await reported(OWN)).toBe('key_missing');
    expect(await reported(BOTH)).toBe(200);
  });

  it('false: a known key is used, a missing one passes as its caller, an unknown one is refused', async () => {
    await configured({ require_key: false });
    expect(await reported(BOTH)).toBe(200);
    expect(await reported(OWN)).toBe(200);
    expect(await reported({ ...OWN, 'headgate-key': 'hg_unknown' })).toBe('key_invalid');
    expect(await reported({ ...OWN, 'headgate-key': 'of-another-form' })).toBe('key_invalid');
    expect(await reported({ authorization: 'Bearer hg_unknown' })).toBe('key_invalid');
    // The key of its provider reached it, with the gateway key and without.
    const { arrivals } = await strict.stats();
    expect(arrivals.map(({ key }) => key)).toEqual(['sk-of-a-caller', 'sk-of-a-caller']);
  });

  it('true: callers need a key even if there is none', async () => {
    await configured({ require_key: true }, { hasKey: false });
    expect(await reported(OWN)).toBe('key_missing');
    expect(await reported({})).toBe('key_missing');
  });

  it("false: the operator's key goes out behind a gateway key only", async () => {
    await configured(
      { require_key: false },
      { upstream: { auth: { secret: 'UPSTREAM_TEST_KEY' } } },
    );
    expect(await reported(OWN)).toBe('key_missing');
    expect(await reported({ 'headgate-key': KEY })).toBe(200);
  });
});

describe('for one upstream', () => {
  it('true requires a key there alone, on the unified routes too', async () => {
    await configured({ require_key: false }, { upstream: { require_key: true } });
    expect(await reported(OWN)).toBe('key_missing');
    expect(await reported(OWN, `${id}-other`)).toBe(200);
    const json = { model: `${id}-model`, messages: [] };
    const unified = await call('/v1/chat/completions', { json, headers: OWN });
    expect(unified.headers.get('headgate-reason')).toBe('key_missing');
    const withKey = await call('/v1/chat/completions', { json, headers: BOTH });
    expect(withKey.status).toBe(200);
    expect((await strict.stats()).total).toBe(2);
  });

  it('false lets callers without a key pass there alone', async () => {
    await configured({ require_key: 'auto' }, { upstream: { require_key: false } });
    expect(await reported(OWN)).toBe(200);
    expect(await reported(OWN, `${id}-other`)).toBe('key_missing');
    const unified = await call('/v1/chat/completions', {
      json: { model: 'unheard-of' },
      headers: OWN,
    });
    expect(unified.headers.get('headgate-reason')).toBe('model_unknown');
  });

  it('a lease of its group needs one, and so does one of a group of several upstreams', async () => {
    await configured(
      { require_key: false },
      {
        upstream: { require_key: true },
        more: {
          leases: 'open',
          groups: [{ name: id, match: { upstreams: [id] } }, { name: 'all' }],
        },
      },
    );
    expect((await post({ group: id }, OWN)).reason).toBe('key_missing');
    expect((await post({ group: 'all' }, OWN)).reason).toBe('key_missing');
    expect((await post({ group: 'all' }, BOTH)).status).not.toBe(401);
    expect((await post({ upstream: id }, OWN)).reason).toBe('key_missing');
    expect((await post({ upstream: `${id}-other` }, OWN)).status).toBe(201);
  });

  it('another value is an error that names the field', async () => {
    const { status, json } = await admin('PUT', '/config', { require_key: 'sometimes' });
    expect(status).toBe(422);
    expect(json.errors[0].path).toBe('require_key');
  });
});

describe('callers without a key', () => {
  const ofHere = async (): Promise<KeylessCaller[]> => {
    const { json } = await admin('GET', '/keyless-callers');
    return json.callers.filter(({ upstream }: KeylessCaller) => upstream === id);
  };

  it('are listed by upstream and fingerprint, and none with a key or that was refused', async () => {
    await configured({ require_key: false });
    await Promise.all([
      reported(OWN),
      reported(OWN),
      reported(BOTH),
      reported({ 'headgate-key': 'hg_unknown' }),
    ]);
    await until(async () => expect(await ofHere()).toMatchObject([{ calls: 2 }]));
    const [one] = await ofHere();
    const { json } = await admin('POST', '/fingerprint', { key: 'sk-of-a-caller' });
    expect(one?.caller).toBe(json.fingerprint);
  });

  it('are counted when the first key is made, at the API', async () => {
    await configured({}, { hasKey: false });
    await Promise.all([reported(OWN), reported({ authorization: 'Bearer sk-of-another' })]);
    await until(async () => expect((await ofHere()).length).toBe(2));
    const { json } = await admin('GET', '/keyless-callers');
    expect(json.first_key.callers).toBeGreaterThanOrEqual(2);
    const { warnings } = (await change('POST', '/keys', { id: 'first' })).json;
    expect(warnings.join('\n')).toMatch(
      new RegExp(`Callers without a gateway key will be rejected.*\`${id}\` \\(2 callers\\)`),
    );
    // The second one locks nobody out.
    expect((await admin('GET', '/keyless-callers')).json.first_key.callers).toBe(0);
    expect((await change('POST', '/keys', { id: 'second' })).json.warnings).toEqual([]);
  });

  it('are counted when a key becomes required, for all or for one upstream, before it is done', async () => {
    await configured({ require_key: false });
    await reported(OWN);
    await until(async () => expect((await ofHere()).length).toBe(1));
    const expected = expect.stringContaining(`\`${id}\` (1 caller)`);
    const { json: config } = await admin('GET', '/config');
    const preview = await admin('POST', '/config/preview', { ...config, require_key: true });
    expect(preview.json.warnings).toContainEqual(expected);
    const patched = await change('PATCH', `/upstreams/${id}`, { require_key: true });
    expect(patched.json.warnings).toContainEqual(expected);
    // Nobody is left there to be locked out.
    const again = await change('PATCH', `/upstreams/${id}`, { models: [] });
    expect(again.json.warnings).not.toContainEqual(expected);
  });

  it('and unknown keys are counted by upstream when they are refused', async () => {
    await configured({ require_key: true });
    await reported(OWN);
    await reported({ 'headgate-key': 'hg_unknown' });
    await until(async () => {
      const { json } = await admin('GET', `/refusals?upstream=${id}`);
      const counts = json.refusals.map(({ reason, count }: RefusalCount) => `${reason} ${count}`);
      expect(counts.toSorted()).toEqual(['key_invalid 1', 'key_missing 1']);
    });
  });
});

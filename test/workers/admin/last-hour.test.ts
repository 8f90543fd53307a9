// A change that refuses calls which pass today says how many calls of the last hour it would refuse.
import { describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { NO_COOLDOWN } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, configure, until } from '../support/worker.ts';
import { chatBody, post } from '../metering/scene.ts';
import { asAdmin, bodyOf } from './ask.ts';
import { makeKey } from './keys-scene.ts';

type LastHourUpstream = NonNullable<ConfigInput['upstreams']>[number];
type LastHourGroup = NonNullable<ConfigInput['groups']>[number];

let scenes = 0;

/** An upstream, a group and a key of their own: what earlier tests called is remembered for an hour. */
interface LastHourScene {
  readonly strict: Strict;
  readonly id: string;
  readonly secret: string;
}

async function scene(
  upstream: Partial<LastHourUpstream> = {},
  group: Partial<LastHourGroup> = {},
): Promise<LastHourScene> {
  scenes += 1;
  const id = `hour-${scenes}`;
  const strict = await strictScope(id, { inputTokens: 10, outputTokens: 10 });
  await configure({
    upstreams: [
      { id, base_url: strict.url, prices: { priced: { input: 1, output: 1 } }, ...upstream },
    ],
    groups: [
      { name: id, match: { upstreams: [id] }, holds: NO_COOLDOWN, track_usage: 'always', ...group },
    ],
    keys: [{ id: `other-${id}`, hash: `sha256:${'0'.repeat(64)}` }],
  });
  const secret = await makeKey({}, `key-${id}`);
  return { strict, id, secret };
}

async function calls({ id, secret }: LastHourScene, model: string, count: number): Promise<void> {
  for (let call = 0; call < count; call += 1) {
    const headers = { 'headgate-key': secret };
    const answer = await post(`/${id}/v1/chat/completions`, chatBody('hi', { model }), { headers });
    await answer.text();
    expect(answer.status).toBe(200);
  }
  await untilCounted(id, model, count);
}

/** Waits until the pool has counted calls: they are counted once they are over there. */
async function untilCounted(id: string, model: string, count: number): Promise<void> {
  await until(async () => {
    const { refuses } = bodyOf(
      await asAdmin('POST /config/preview', { body: { groups: [], keys: [] } }),
    );
    const of = refuses.refused.flatMap((each) => each.of);
    const counted = of.find((each) => each.upstream === id && each.model === model);
    expect(counted?.calls).toBe(count);
  });
}

const patchGroup = (id: string, body: object) => admin('PATCH', `/groups/${id}`, body);

describe('a budget over models without a price', () => {
  const BUDGET = { limits: { budget_usd: { per_day: 10 } } };

  it('names the models and their calls, and how to count them', async () => {
    const made = await scene();
    const { id } = made;
    await calls(made, 'unpriced', 2);
    await calls(made, 'odd', 1);
    await calls(made, 'priced', 1);
    const { said } = await preview(id, BUDGET);
    expect(said.refuses.refused).toEqual([
      {
        reason: 'price_unknown',
        group: id,
        calls: 3,
        of: [
          { key: `key-${id}`, upstream: id, model: 'unpriced', calls: 2 },
          { key: `key-${id}`, upstream: id, model: 'odd', calls: 1 },
        ],
      },
    ]);
    expect(said.refuses.calls).toBeGreaterThanOrEqual(4);
    const { json } = await patchGroup(id, BUDGET);
    expect(json).toMatchObject({ warnings: said.warnings });
    expect(said.warnings[0]).toMatch(
      /^This change rejects calls that pass today: 3 of \d+ calls of the last hour\. /,
    );
    expect(said.warnings[0]).toContain(
      `The group \`${id}\` has a budget, but the price is unknown for \`unpriced\` at \`${id}\` (2), \`odd\` at \`${id}\` (1).`,
    );
    expect(said.warnings[0]).toContain('fallback_price');
    expect((await once(made, 'unpriced')).reason).toBe('price_unknown');
  });

  it('refuses none with a fallback price in the same change, 0 included', async () => {
    const made = await scene();
    const { id } = made;
    await calls(made, 'unpriced', 1);
    const free = { per_day: 10, fallback_price: { input: 0, output: 0 } };
    const { json } = await patchGroup(id, { limits: { budget_usd: free } });
    expect(json).toMatchObject({ warnings: [] });
    expect((await once(made, 'unpriced')).status).toBe(200);
  });

  it.each([
    ['is on a private address', {}],
    ['takes calls without a key', { auth: 'none' as const }],
  ])('refuses none where the upstream has no prices and %s', async (_, fields) => {
    const made = await scene({ prices: {}, ...fields });
    const { id } = made;
    await calls(made, 'unpriced', 1);
    const { json } = await patchGroup(id, BUDGET);
    expect(json).toMatchObject({ warnings: [] });
    expect((await once(made, 'unpriced')).status).toBe(200);
  });

  it('knows the models that answers name, where nothing reads what calls name', async () => {
    const made = await scene({}, { track_usage: 'auto' });
    const { id } = made;
    await admin('PATCH', `/keys/key-${id}`, { limits: { max_concurrency: 5 } });
    await calls(made, 'unpriced', 2);
    await calls(made, 'priced', 1);
    const { said } = await preview(id, BUDGET);
    expect(said.refuses.refused).toMatchObject([
      { reason: 'price_unknown', group: id, of: [{ model: 'unpriced', calls: 2 }] },
    ]);
    // The group of the key counts the same calls without a model.
    const { refuses } = bodyOf(
      await asAdmin('POST /keys/{id}/preview', {
        params: { id: `key-${id}` },
        query: { as: 'revoke' },
      }),
    );
    expect(refuses.refused).toMatchObject([{ reason: 'key_invalid', calls: 3 }]);
  });

  it('is told of a key and of a team too', async () => {
    const made = await scene();
    const { id } = made;
    await calls(made, 'unpriced', 1);
    const limits = { budget_usd: { per_day: 10 } };
    const ofKey = await admin('PATCH', `/keys/key-${id}`, { team: `team-${id}`, limits });
    expect(ofKey.json).toMatchObject({
      warnings: [expect.stringContaining(`The key \`key-${id}\` has a budget`)],
    });
    await admin('PATCH', `/keys/key-${id}`, { limits: { budget_usd: { per_day: null } } });
    const ofTeam = await admin('PUT', `/teams/team-${id}`, { limits });
    expect(ofTeam.json).toMatchObject({
      warnings: [expect.stringContaining(`The team \`team-${id}\` has a budget`)],
    });
  });
});

describe('the preview of a key', () => {
  it('tells what its budget would refuse, and changes nothing', async () => {
    const made = await scene();
    const { id } = made;
    await calls(made, 'unpriced', 1);
    const body = { limits: { budget_usd: { per_day: 10 } } };
    const { refuses } = bodyOf(
      await asAdmin('POST /keys/{id}/preview', { params: { id: `key-${id}` }, body }),
    );
    expect(refuses.refused).toMatchObject([
      { reason: 'price_unknown', group: `key:key-${id}`, calls: 1 },
    ]);
    const key = bodyOf(await asAdmin('GET /keys/{id}', { params: { id: `key-${id}` } }));
    expect(key.limits?.budget_usd?.per_day ?? null).toBeNull();
  });

  it('tells what revoking it would refuse, and leaves it open', async () => {
    const made = await scene();
    const { id } = made;
    await calls(made, 'priced', 2);
    const revoking = (key: string) =>
      asAdmin('POST /keys/{id}/preview', { params: { id: key }, query: { as: 'revoke' } });
    const { refuses, warnings } = bodyOf(await revoking(`key-${id}`));
    expect(refuses.refused).toMatchObject([{ reason: 'key_invalid', calls: 2 }]);
    expect(warnings).toEqual([expect.stringContaining(`(\`key_invalid\`): \`key-${id}\` (2)`)]);
    expect((await once(made, 'priced')).status).toBe(200);
    expect(await revoking('key-nowhere')).toMatchObject({ status: 404 });
  });

  it('leaves out warnings that the configuration has without the change', async () => {
    const made = await scene();
    const { id } = made;
    const config = bodyOf(await asAdmin('GET /config'));
    await admin('PUT', '/config', { ...config, leases: 'open' });
    const body = { note: 'other' };
    const { warnings } = bodyOf(
      await asAdmin('POST /keys/{id}/preview', { params: { id: `key-${id}` }, body }),
    );
    expect(warnings).toEqual([]);
    const { json } = await admin('PATCH', `/keys/key-${id}`, body);
    expect(json).toMatchObject({ warnings: [expect.stringContaining('leases: open')] });
  });

  it('has the errors of the change', async () => {
    await scene();
    const answer = await asAdmin('POST /keys/{id}/preview', {
      params: { id: 'new' },
      body: { lane_max: 'odd' },
    });
    expect(answer).toMatchObject({ status: 422, problem: { errors: [{ path: 'lane_max' }] } });
  });
});

describe('the preview of a team', () => {
  it('tells what its budget would refuse', async () => {
    const made = await scene();
    const { id } = made;
    await calls(made, 'unpriced', 1);
    await admin('PATCH', `/keys/key-${id}`, { team: `team-${id}` });
    const body = { limits: { budget_usd: { per_day: 10 } } };
    const params = { id: `team-${id}` };
    const { refuses } = bodyOf(await asAdmin('POST /teams/{id}/preview', { params, body }));
    expect(refuses.refused).toMatchObject([
      { reason: 'price_unknown', group: `team:team-${id}`, calls: 1 },
    ]);
  });
});

describe('a change', () => {
  it('that revokes or deletes a key tells of its calls', async () => {
    const made = await scene();
    const { id } = made;
    await calls(made, 'priced', 2);
    const expected = new RegExp(
      `: 2 of \\d+ calls of the last hour\\. Their gateway key becomes invalid \\(\`key_invalid\`\\): \`key-${id}\` \\(2\\)\\.$`,
    );
    const revoked = await admin('POST', `/keys/key-${id}/revoke`);
    expect(revoked.json).toMatchObject({ warnings: [expect.stringMatching(expected)] });
    const deleted = await admin('DELETE', `/keys/key-${id}`);
    expect(deleted.json).toMatchObject({ warnings: [] });
  });

  it('that rotates a key tells of its calls, unless the key before still opens', async () => {
    const made = await scene();
    const { id } = made;
    await calls(made, 'priced', 1);
    const rotate = (grace_ms: number) => admin('POST', `/keys/key-${id}/rotate`, { grace_ms });
    expect((await rotate(60_000)).json).toMatchObject({ warnings: [] });
    expect((await rotate(0)).json).toMatchObject({
      warnings: [expect.stringContaining(`(\`key_invalid\`): \`key-${id}\` (1)`)],
    });
  });

  it('that takes groups from a key tells of its calls there', async () => {
    const made = await scene();
    const { id } = made;
    await calls(made, 'priced', 1);
    const { json } = await admin('PATCH', `/keys/key-${id}`, { groups: ['elsewhere'] });
    expect(json).toMatchObject({
      warnings: [expect.stringContaining(`(\`key_forbidden\`): \`key-${id}\` (1)`)],
    });
  });

  it('that removes an upstream tells of its calls', async () => {
    const made = await scene();
    const { id } = made;
    await calls(made, 'priced', 1);
    const config = bodyOf(await asAdmin('GET /config'));
    const { json } = await admin('PUT', '/config', { ...config, upstreams: [], groups: [] });
    expect(JSON.stringify(json)).toContain(`(\`upstream_unknown\`): \`${id}\` (1)`);
  });

  it('that lowers a budget under what is spent tells of the calls of the group', async () => {
    const made = await scene();
    const { id } = made;
    await calls(made, 'priced', 3);
    const spent = { limits: { budget_usd: { per_day: 0.000_01 } } };
    await until(async () => {
      const { said } = await preview(id, spent);
      expect(said.refuses.refused).toMatchObject([
        { reason: 'budget_exhausted', group: id, calls: 3 },
      ]);
      expect(said.warnings[0]).toContain(
        `The group \`${id}\` has already spent more than this budget`,
      );
    });
  });

  it('that refuses nothing new says nothing', async () => {
    const made = await scene();
    const { id } = made;
    await calls(made, 'unpriced', 1);
    const { json } = await patchGroup(id, { limits: { max_concurrency: 3 } });
    expect(json).toMatchObject({ warnings: [] });
  });
});

async function preview(id: string, body: Record<string, unknown>) {
  const said = bodyOf(
    await asAdmin('POST /groups/{name}/preview', {
      params: { name: id },
      query: { as: 'patch' },
      body,
    }),
  );
  return { said };
}

async function once({ id, secret }: LastHourScene, model: string) {
  const headers = { 'headgate-key': secret };
  const answer = await post(`/${id}/v1/chat/completions`, chatBody('hi', { model }), { headers });
  await answer.text();
  return { status: answer.status, reason: answer.headers.get('headgate-reason') };
}

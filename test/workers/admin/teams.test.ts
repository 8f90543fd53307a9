// Teams: names on keys, whose limits and budgets hold over all of a team's keys together.
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { strictScope, type Strict } from '../support/strict.ts';
import { call } from '../support/worker.ts';
import { asAdmin, bodyOf } from './ask.ts';
import { ask, CHAT, configureFor, makeKey, read } from './keys-scene.ts';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('teams', { chunks: 2, chunkDelayMs: 5 });
});

beforeEach(() => configureFor(strict));

let teams = 0;
/** A name that no other test uses: objects outlive their tests. */
const newTeam = (): string => `team${(teams += 1)}`;

/** A call that is not streamed, so that its upstream says what it used. */
async function pay(secret: string) {
  const json = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'x' }], max_tokens: 50 };
  const answer = await call(CHAT, { json, headers: { 'headgate-key': secret } });
  const reason = answer.headers.get('headgate-reason');
  return { status: answer.status, reason, text: await answer.text() };
}

async function limit(id: string, limits: object): Promise<void> {
  const { version } = bodyOf(
    await asAdmin('PUT /teams/{id}', { params: { id }, body: { limits } }),
  );
  await read(version);
}

describe('the limits of a team', () => {
  it('hold over all its keys, and over no other', async () => {
    const team = newTeam();
    await limit(team, { max_concurrency: 1 });
    const [one, two] = [await makeKey({ team }, `${team}-a`), await makeKey({ team }, `${team}-b`)];
    const { total: before } = await strict.stats();
    const calls = [one, two, one, two].map((secret) => ask(secret));
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(4).fill(200));
    const { total, peak } = await strict.stats();
    expect([total - before, peak]).toEqual([4, 1]);
    expect((await ask(one)).groups).toContain(`team:${team}`);
    const stranger = await makeKey({}, `${team}-c`);
    expect((await ask(stranger)).groups).not.toContain('team:');
  });

  it('refuse exactly what does not fit into its budget, whichever key asks', async () => {
    const team = newTeam();
    await strict.configure({ inputTokens: 100_000, outputTokens: 100_000 });
    // A call costs 0.2 USD: two fit, and the estimate of the third does not.
    await limit(team, { budget_usd: { per_month: 0.4 } });
    const [one, two] = [await makeKey({ team }, `${team}-a`), await makeKey({ team }, `${team}-b`)];
    expect((await pay(one)).status).toBe(200);
    expect((await pay(two)).status).toBe(200);
    const { total } = await strict.stats();
    for (const secret of [one, two]) {
      const refused = await pay(secret);
      expect(refused).toMatchObject({ status: 402, reason: 'budget_exhausted' });
      expect(refused.text).toContain(`the budget of team \`${team}\`: 0.4 USD per month`);
    }
    expect((await strict.stats()).total).toBe(total);
    expect((await pay(await makeKey({}, `${team}-c`))).status).toBe(200);
    await strict.configure({ inputTokens: 10, outputTokens: 10 });
  });

  it('are gone with the team, whose name stays on the keys', async () => {
    const team = newTeam();
    await limit(team, { rpm: 1 });
    const secret = await makeKey({ team }, `${team}-a`);
    expect((await ask(secret)).status).toBe(200);
    expect((await ask(secret, CHAT, { 'headgate-max-wait': '0' })).status).toBe(429);
    const { version } = bodyOf(await asAdmin('DELETE /teams/{id}', { params: { id: team } }));
    await read(version);
    expect((await ask(secret)).status).toBe(200);
    expect(bodyOf(await asAdmin('GET /teams/{id}', { params: { id: team } }))).toMatchObject({
      is_listed: false,
      keys: [`${team}-a`],
    });
  });

  it('are shown to callers, without what others of the team left of them', async () => {
    const team = newTeam();
    await limit(team, { rpm: 100 });
    const secret = await makeKey({ team, limits: { rpm: 50 } }, `${team}-a`);
    expect((await ask(secret)).status).toBe(200);
    const answer = await call('/status', { headers: { 'headgate-key': secret } });
    const { groups } = await answer.json<{ groups: { kind: string; limits: unknown }[] }>();
    expect(groups.find(({ kind }) => kind === 'team')?.limits).toMatchObject({
      rates: { rpm: { limit: 100, left: null } },
    });
    expect(groups.find(({ kind }) => kind === 'key')?.limits).toMatchObject({
      rates: { rpm: { limit: 50, left: expect.any(Number) } },
    });
  });
});

describe('the routes of teams', () => {
  it('list those with limits and those that keys name', async () => {
    const [listed, named] = [newTeam(), newTeam()];
    await limit(listed, { rpm: 5 });
    await makeKey({ team: named }, `${named}-a`);
    const { teams: all } = bodyOf(await asAdmin('GET /teams', { query: { limit: 1_000 } }));
    expect(all.find(({ id }) => id === listed)).toMatchObject({ is_listed: true, keys: [] });
    expect(all.find(({ id }) => id === named)).toMatchObject({ is_listed: false });
    const patched = bodyOf(
      await asAdmin('PATCH /teams/{id}', { params: { id: named }, body: { limits: { tpm: 7 } } }),
    );
    expect(patched.team).toMatchObject({ is_listed: true, limits: { tpm: 7, rpm: null } });
  });

  it('refuse what is no team, and do not rename', async () => {
    const none = await asAdmin('GET /teams/{id}', { params: { id: 'nobody' } });
    expect(none.status).toBe(404);
    expect((await asAdmin('DELETE /teams/{id}', { params: { id: 'nobody' } })).status).toBe(404);
    const renamed = await asAdmin('PUT /teams/{id}', { params: { id: 'a' }, body: { id: 'b' } });
    expect(renamed).toMatchObject({ status: 422, problem: { errors: [{ path: 'id' }] } });
    const odd = await asAdmin('PUT /teams/{id}', { params: { id: 'No Team' }, body: {} });
    expect(odd).toMatchObject({ status: 422, problem: { errors: [{ path: 'id' }] } });
  });

  it('warn of a key whose team is misspelt', async () => {
    const team = newTeam();
    await limit(team, { rpm: 5 });
    const { warnings } = bodyOf(
      await asAdmin('POST /keys', { body: { id: `${team}-a`, team: `${team}-typo` } }),
    );
    expect(warnings.join()).toContain(
      `The key \`${team}-a\` names the team \`${team}-typo\`, which \`teams\` does not list`,
    );
  });
});

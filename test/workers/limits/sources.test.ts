// Where a limit comes from, as the admin API shows it: configured, built in, learned, or unknown; and what an
// operator says of an upstream goes before what is built in.
import { afterAll, describe, expect, it } from 'vitest';
import { CHAT, post } from '../metering/scene.ts';
import { nothingLeaks, NO_COOLDOWN } from '../support/pool.ts';
import { strictScope } from '../support/strict.ts';
import { admin, change, configure, until } from '../support/worker.ts';
import { finish, newStage, send, streaming, reportedBy, untilGroup } from './stage.ts';

afterAll(nothingLeaks);

interface SourcesLimit {
  readonly configured: number | null;
  readonly effective: number;
  readonly source: string;
}

/** Reads what the admin API shows of a group: in its own status, and in that of all groups. */
async function limitsOf(group: string): Promise<SourcesLimit[]> {
  const own = await admin('GET', `/groups/${encodeURIComponent(group)}/status`);
  const { json } = await admin('GET', '/status');
  const groups = json.groups as readonly { readonly name: string; readonly limit: SourcesLimit }[];
  return [own.json.limit, ...groups.filter(({ name }) => name === group).map((each) => each.limit)];
}

async function expectLimit(group: string, limit: SourcesLimit): Promise<void> {
  await until(async () => expect(await limitsOf(group)).toEqual([limit, limit]));
}

/** An automatic group whose upstream is at an address of ours. */
async function automatic(id: string, settings = {}) {
  const strict = await strictScope('sources', settings);
  await configure({ upstreams: [{ id, base_url: strict.url }] });
  return strict;
}

const glm = (model: string): string => JSON.stringify({ model, messages: [] });

/** A call with a key of its own, so that it makes a partition that no other test knows. */
async function served(path: string, body: string, key: string): Promise<number> {
  const response = await post(path, body, { headers: { authorization: `Bearer ${key}` } });
  await response.text();
  return response.status;
}

describe('the limit of a group', () => {
  it('that was learned is shown beside the configured one', async () => {
    const stage = await newStage({ settings: { limit: 3 }, group: { adaptive: 'auto' } });
    await expectLimit(stage.group, { configured: 8, effective: 8, source: 'configured' });
    const holders = await Promise.all(['a', 'b', 'c'].map((label) => streaming(stage, label)));
    const one = send(stage, 'one');
    await untilGroup(stage, { queued: 1, refusals_total: { concurrency: 1 } });
    await expectLimit(stage.group, { configured: 8, effective: 3, source: 'learned' });
    await finish(stage, ...holders);
    expect(await reportedBy(one)).toMatchObject({ status: 200 });
  });

  it('is unknown where nothing is known of the upstream, and 64 are assumed', async () => {
    await automatic('nobody-knows');
    expect(await served(`/nobody-knows${CHAT}`, glm('m'), 'key-unknown')).toBe(200);
    const unknown = { configured: null, effective: 64, source: 'unknown' };
    await expectLimit('auto:nobody-knows', unknown);
  });

  it('that is built in is shown as such, and an operator sets another for the upstream', async () => {
    const strict = await automatic('zai');
    expect(await served(`/zai${CHAT}`, glm('glm-5.1'), 'key-built-in')).toBe(200);
    const builtIn = { configured: null, effective: 1, source: 'built_in' };
    await expectLimit('auto:zai/glm-5.1', builtIn);
    const group = { match: { upstreams: ['zai'] }, limits: { max_concurrency: 7 } };
    await change('PUT', '/groups/ours', { ...group, holds: NO_COOLDOWN });
    const asked = await post(`/zai${CHAT}`, glm('glm-5.1'));
    expect(asked.headers.get('headgate-groups')).toBe('ours');
    await asked.text();
    await expectLimit('ours', { configured: 7, effective: 7, source: 'configured' });
    expect((await strict.stats()).completed).toBe(2);
  });
});

// Where a lease goes after its holder reports a refusal: the same rules as for a proxied call.
import { afterAll, expect, it } from 'vitest';
import type { ReportAnswer } from '../../../src/contract/caller-api.ts';
import { nothingLeaks } from '../support/pool.ts';
import { del, group, limitTo, patch, post } from './scene.ts';

afterAll(nothingLeaks);

const RATE_LIMITED = { status: 429, error: { error: { code: 'rate_limit_exceeded' } } };
const FAILED = { status: 500, error: 'broken' };

type MembersAtFields = Parameters<typeof group>[2];

/** A group whose members are at this many upstreams. */
async function membersAt(
  name: string,
  count: number,
  more: MembersAtFields = {},
  nameOf = (upstream: string): string => upstream,
): Promise<void> {
  const ids = Array.from({ length: count }, (_, at) => `${name}-${at}`);
  const members = ids.map((upstream) => ({ name: nameOf(upstream), upstream }));
  await limitTo([group(name, 9, { members, ...more })], {
    upstreams: ids.map((id) => ({ id, base_url: `https://${id}.test`, auth: 'none' as const })),
  });
}

/** Takes a lease, reports this for as long as the answer is `again`, and returns the members and the last answer. */
async function refusedBy(
  body: { readonly group: string; readonly max_wait_ms?: number },
  report: Parameters<typeof patch>[1],
  timesMax = 20,
): Promise<{ readonly members: (string | null)[]; readonly last: ReportAnswer | undefined }> {
  const members: (string | null)[] = [];
  let ticket: string | undefined;
  let last: ReportAnswer | undefined;
  while (members.length < timesMax) {
    const { status, body: lease } = await post({
      ...body,
      ...(ticket !== undefined && { ticket }),
    });
    if (status !== 201) break;
    members.push(lease.member);
    ({ body: last } = await patch(lease.lease, report));
    if (last.action !== 'again') break;
    ({ ticket } = last);
  }
  return { members, last };
}

it('each member is asked once, however many refuse, before one of them is asked again', async () => {
  await membersAt('many', 6);
  const { members, last } = await refusedBy({ group: 'many' }, RATE_LIMITED, 6);
  expect(new Set(members).size).toBe(6);
  expect(last).toMatchObject({ action: 'again', after_ms: 0 });
});

it('a ticket is valid after as many members have refused as a group may have, with long names', async () => {
  const name = 'a-group-with-a-long-name';
  await membersAt(name, 32, {}, (upstream) => upstream.padStart(64, 'm'));
  const { members, last } = await refusedBy({ group: name }, RATE_LIMITED, 32);
  expect(new Set(members).size).toBe(32);
  const { ticket = '' } = last ?? {};
  const { status } = await post({ group: name, max_wait_ms: 0, ticket });
  // Whether a member may be asked again by now goes by the machine.
  expect(status).not.toBe(400);
});

it('a lease that must not wait goes to the other members, and to none twice', async () => {
  await membersAt('brief', 3);
  const { members, last } = await refusedBy({ group: 'brief', max_wait_ms: 0 }, RATE_LIMITED);
  expect(new Set(members).size).toBe(3);
  expect(members).toHaveLength(3);
  expect(last).toEqual({ action: 'stop', after_ms: 0 });
});

it('after a failure it goes to one other member, and further only as its group allows', async () => {
  await membersAt('failing', 4, { retries: { max: 0 } });
  const { members, last } = await refusedBy({ group: 'failing' }, FAILED);
  expect(new Set(members).size).toBe(2);
  expect(members).toHaveLength(2);
  expect(last?.action).toBe('stop');
});

it('a member that failed is asked again after a pause', async () => {
  await membersAt('pausing', 1, { retries: { max: 1, budget: 1 } });
  const { body: lease } = await post({ group: 'pausing' });
  const { body: again } = await patch(lease.lease, FAILED);
  expect(again.action).toBe('again');
  expect(again.after_ms).toBeGreaterThanOrEqual(250);
  expect(again.after_ms).toBeLessThanOrEqual(500);
  const next = await post({ group: 'pausing', ticket: again.ticket });
  expect(next.body.member).toBe('pausing-0');
  await del(next.body.lease);
});

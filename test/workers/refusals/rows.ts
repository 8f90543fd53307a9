import { createExecutionContext } from 'cloudflare:test';
import { expect, vi } from 'vitest';
import { returns } from '../../../src/call/acquire/rejections.ts';
import { bodyBudget } from '../../../src/call/request/body.ts';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { REASON_NAMES, type Reason, type RefusalCount } from '../../../src/contract/reasons.ts';
import type { Env } from '../../../src/env.ts';
import { createApp } from '../../../src/http/app.ts';
import { BODY_LIMITS } from '../../../src/upstream/body/body-budget.ts';
import { del, leased, post, put } from '../leases/scene.ts';
import { closeAll, connect, keyHash, upgrade } from '../sockets/client.ts';
import { mend, overload, refuseAll } from '../support/overload.ts';
import { NO_COOLDOWN, passAwake, pool, untilStatus } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import {
  admin,
  call,
  change,
  chat,
  configure,
  env,
  open,
  type CallInit,
} from '../support/worker.ts';

type RefusalsRowsGroupInput = NonNullable<ConfigInput['groups']>[number];
type RefusalsRowsUpstreamInput = NonNullable<ConfigInput['upstreams']>[number];

/** The gateway key of most calls, of the team `red`. */
export const ALICE = 'hg_key_of_alice';
/** A key that was revoked. */
export const GONE = 'hg_key_that_was_revoked';
/** A key that may use no group of these tests. */
export const BARRED = 'hg_key_that_is_barred';

/** The place of a reason: an upstream and a group of its own. */
export interface RefusalTarget {
  readonly upstream: string;
  readonly group: string;
  readonly chat: string;
  readonly strict: Strict;
}

/** A way to have Headgate refuse a call with a reason. */
export interface Row {
  readonly group?: Partial<RefusalsRowsGroupInput>;
  readonly upstream?: Partial<RefusalsRowsUpstreamInput>;
  /** Answers of the refused calls, where they are responses. */
  refuse(place: RefusalTarget): Promise<unknown>;
  /** Facts of the refused call that differ from those of a call of alice in the place of its own. */
  readonly facts?: Partial<Pick<RefusalCount, 'key' | 'team' | 'group' | 'upstream'>>;
}

const OF_ALICE = { 'headgate-key': ALICE };
const AT_ONCE = { ...OF_ALICE, 'headgate-max-wait': '0' };
const NONE: Partial<RefusalsRowsGroupInput> = { limits: { max_concurrency: 0 } };
const ONE: Partial<RefusalsRowsGroupInput> = { limits: { max_concurrency: 1 } };
const NOWHERE = { group: null, upstream: null };
const NO_ONE = { key: null, team: null };
/** A prompt whose answer stops after its first event until the upstream is resumed. */
const HELD = '[[strict silent-after-chunks=1]]';

/** A chat call of alice, or of other headers. */
function ask(place: RefusalTarget, headers: Record<string, string> = OF_ALICE): Promise<Response> {
  return chat(place.chat, 'refused', {
    headers: { 'content-type': 'application/json', ...headers },
  });
}

const refuse = (headers?: Record<string, string>) => (place: RefusalTarget) => ask(place, headers);

const plainCall = (path: string, init: CallInit) => () => call(path, init);

/** A request to a Worker with other variables. */
async function elsewhere(url: string, variables: object): Promise<Response> {
  const request = new Request<unknown, IncomingRequestCfProperties>(url, {
    method: 'POST',
    body: JSON.stringify({ model: 'gpt-4o-mini', messages: [] }),
    headers: { 'content-type': 'application/json', ...OF_ALICE },
  } as RequestInit<IncomingRequestCfProperties>);
  const app = createApp() as Required<ExportedHandler<Env>>;
  return app.fetch(request, { ...env, ...variables }, createExecutionContext());
}

/** Fills the only slot of a place with a call, until `run` has ended. */
async function whileHeld(
  place: RefusalTarget,
  run: (lease: string) => Promise<unknown>,
): Promise<unknown> {
  const holder = open(place.chat, HELD, { headers: OF_ALICE });
  const lease = (await holder.response).headers.get('headgate-lease') ?? '';
  const answer = await run(lease);
  await place.strict.resume();
  await holder.end;
  return answer;
}

/** Refuses a call whose group is waited for. */
async function cancelled(place: RefusalTarget): Promise<unknown> {
  const waiter = open(place.chat, 'cancelled', { headers: OF_ALICE });
  await untilStatus(place.group, { queued: 1 });
  const { json } = await admin('GET', `/groups/${place.group}/waiters`);
  await admin('DELETE', `/groups/${place.group}/waiters/${json.waiters[0].ticket}`);
  return waiter.response;
}

async function infeasible(place: RefusalTarget): Promise<unknown> {
  await place.strict.configure({ firstByteDelayMs: 500 });
  const samples = Array.from({ length: 10 }, () =>
    open(place.chat, 'sample', { headers: OF_ALICE }),
  );
  await Promise.all(samples.map(({ end }) => end));
  await untilStatus(place.group, { in_use: 0, granted_total: 10 });
  await change('PATCH', `/groups/${place.group}`, { limits: { max_concurrency: 1 } });
  await place.strict.configure({ firstByteDelayMs: 0 });
  return whileHeld(place, () => ask(place, { ...OF_ALICE, 'headgate-max-wait': '100ms' }));
}

async function afterFailures(
  place: RefusalTarget,
  failure: string,
  calls: number,
): Promise<unknown> {
  await place.strict.failNext(failure, calls);
  for (let at = 0; at < calls; at += 1) await (await ask(place)).text();
  await untilStatus(place.group, { in_use: 0 });
  return ask(place, AT_ONCE);
}

async function crowded(place: RefusalTarget): Promise<unknown> {
  const waiting = bodyBudget.count(BODY_LIMITS.restingBytes, 'rests');
  const json = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'x'.repeat(200_000) }] };
  const answer = await call(place.chat, { json, headers: OF_ALICE });
  waiting.release();
  return answer;
}

async function brokenGroup(place: RefusalTarget, error: Error): Promise<unknown> {
  refuseAll(place.group, error);
  const answer = await ask(place, AT_ONCE);
  mend();
  return answer;
}

const overloadedError = async (place: RefusalTarget): Promise<unknown> => {
  overload(place.group);
  const answer = await ask(place, AT_ONCE);
  mend();
  return answer;
};

/** A mistake of ours, at the end of a call that is refused. */
async function mistaken(place: RefusalTarget): Promise<unknown> {
  const mock = vi.spyOn(returns, 'space').mockImplementation(() => {
    throw new Error('a mistake');
  });
  const answer = await ask(place, AT_ONCE);
  mock.mockRestore();
  return answer;
}

const HALF = { 'content-type': 'application/json', ...OF_ALICE };

/** Reasons of groups. */
const OF_GROUPS = {
  queue_full: { group: { ...NONE, queue: { max_length: 0 } }, refuse: refuse() },
  queue_timeout: { group: { ...NONE, queue: { timeout_ms: 100 } }, refuse: refuse() },
  busy: { group: NONE, refuse: refuse(AT_ONCE) },
  infeasible: { group: { limits: { max_concurrency: 10 } }, refuse: infeasible },
  paused: { group: { paused: true }, refuse: refuse(AT_ONCE) },
  upstream_limited: { refuse: (place) => afterFailures(place, 'long_window', 1) },
  draining: { group: { draining: true }, refuse: refuse() },
  cancelled: { group: NONE, refuse: cancelled },
  nested: {
    group: ONE,
    refuse: (place) =>
      whileHeld(place, (lease) => ask(place, { ...OF_ALICE, 'headgate-parent': lease })),
  },
  never_fits: { refuse: refuse({ ...OF_ALICE, 'headgate-weight': '2' }) },
  breaker_open: {
    group: { breaker: { min_calls: 2, hold_ms: 60_000 } },
    refuse: (place) => afterFailures(place, 'error', 2),
  },
  members_out: {
    group: { members: [{ name: 'a', upstream: 'u-members-out', enabled: false }] },
    refuse: refuse(AT_ONCE),
  },
  budget_exhausted: {
    upstream: { prices: { 'gpt-4o-mini': { input: 1_000, output: 1_000 } } },
    group: { limits: { budget_usd: { per_day: 0.000_001 } } },
    refuse: refuse(),
  },
  price_unknown: {
    upstream: { models: ['gpt-4o-mini'], prices: { other: { input: 1, output: 1 } } },
    group: { limits: { budget_usd: { per_day: 1 } } },
    refuse: refuse(),
  },
  too_many_groups: { refuse: refuse(), facts: { group: 'more-4' } },
  limiter_unavailable: { refuse: (place) => brokenGroup(place, new Error('out of reach')) },
  limiter_overloaded: { refuse: overloadedError },
  account_capped: {
    refuse: (place) => brokenGroup(place, new Error("Exceeded the account's spending cap.")),
  },
  too_many_bytes_waiting: {
    group: { ...NONE, match: { models: ['gpt-4o-mini'], upstreams: ['u-too-many-bytes-waiting'] } },
    refuse: crowded,
  },
} satisfies Partial<Record<Reason, Row>>;

/** Reasons of upstreams, keys and the request. */
const OF_CALLS = {
  upstream_unreachable: { upstream: { base_url: 'http://127.0.0.1:9' }, refuse: refuse() },
  upstream_redirects: {
    refuse: async (place) => {
      await place.strict.configure({ redirect: 'https://elsewhere.example/' });
      return ask(place);
    },
  },
  secret_missing: {
    upstream: { auth: { secret: 'UPSTREAM_NOT_SET' } },
    refuse: refuse(),
    facts: { group: null },
  },
  setting_invalid: {
    refuse: ({ chat: path }) => elsewhere(`https://headgate.test${path}`, { JURISDICTION: 'mars' }),
    facts: { ...NO_ONE, group: null },
  },
  upstream_unknown: {
    refuse: plainCall('/nowhere/v1/models', { headers: OF_ALICE }),
    facts: NOWHERE,
  },
  model_unknown: {
    refuse: plainCall('/v1/chat/completions', { json: { model: 'unheard-of' }, headers: OF_ALICE }),
    facts: NOWHERE,
  },
  model_ambiguous: {
    upstream: { models: ['twin-*'] },
    refuse: plainCall('/v1/chat/completions', { json: { model: 'twin-1' }, headers: OF_ALICE }),
    facts: NOWHERE,
  },
  body_unreadable: {
    group: { match: { models: ['gpt-4o-mini'], upstreams: ['u-body-unreadable'] } },
    refuse: ({ chat: path }) => call(path, { method: 'POST', body: '{"model":', headers: HALF }),
    facts: { group: null },
  },
  request_timeout: {
    refuse: ({ chat: path }) => call(`/!malformed/late${path}`),
    facts: { ...NO_ONE, group: null },
  },
  key_missing: { refuse: refuse({}), facts: { ...NO_ONE, group: null } },
  key_invalid: { refuse: refuse({ 'headgate-key': GONE }), facts: { key: 'gone', group: null } },
  key_forbidden: { refuse: refuse({ 'headgate-key': BARRED }), facts: { key: 'barred' } },
  header_invalid: {
    refuse: refuse({ ...OF_ALICE, 'headgate-lane': 'nonsense' }),
    facts: { ...NO_ONE, group: null },
  },
  websocket_unsupported: {
    refuse: ({ upstream }) => upgrade(`/${upstream}/v1/anything`, OF_ALICE),
    facts: { group: null },
  },
  too_many_connections: {
    upstream: { websocket: 'turns', turn_connections_each: 1 },
    refuse: async ({ upstream }) => {
      await connect(`/${upstream}/v1/responses`, OF_ALICE);
      const answer = await upgrade(`/${upstream}/v1/responses`, OF_ALICE);
      closeAll();
      return answer;
    },
    facts: { group: null },
  },
  http_required: {
    refuse: ({ upstream }) => upgrade(`/${upstream}/v1/responses`, OF_ALICE),
    facts: { group: null },
  },
  method_unknown: {
    refuse: plainCall('/healthz', { method: 'DELETE' }),
    facts: { ...NO_ONE, ...NOWHERE },
  },
  host_unknown: {
    refuse: ({ chat: path }) =>
      elsewhere(`https://rebound.example${path}`, { ALLOWED_HOSTS: 'localhost' }),
    facts: { ...NO_ONE, group: null },
  },
  internal: { group: NONE, refuse: mistaken, facts: { ...NO_ONE, group: null } },
} satisfies Partial<Record<Reason, Row>>;

/** Reasons of leases over HTTP. */
const OF_LEASES = {
  field_invalid: {
    refuse: () => post({ max_wait_ms: 'long' }, OF_ALICE),
    facts: { ...NO_ONE, ...NOWHERE },
  },
  group_unknown: { refuse: () => post({ group: 'nowhere' }, OF_ALICE), facts: NOWHERE },
  route_unknown: {
    refuse: plainCall('/leases/a/b/c', { headers: OF_ALICE }),
    facts: { ...NO_ONE, ...NOWHERE },
  },
  origin_forbidden: {
    refuse: () => post({ group: 'g-nested' }, { ...OF_ALICE, origin: 'https://evil.example' }),
    facts: { ...NO_ONE, ...NOWHERE },
  },
  content_type_unsupported: {
    refuse: () => post({ group: 'g-nested' }, { ...OF_ALICE, 'content-type': 'text/plain' }),
    facts: { ...NO_ONE, ...NOWHERE },
  },
  lease_unknown: { refuse: () => put('never-given-out', OF_ALICE), facts: NOWHERE },
  lease_gone: {
    refuse: async ({ group }) => {
      const held = await leased({ group }, OF_ALICE);
      await del(held.lease, undefined, OF_ALICE);
      return put(held.lease, OF_ALICE);
    },
  },
  lease_revoked: {
    refuse: async ({ group }) => {
      const held = await leased({ group }, OF_ALICE);
      await pool(group).revoke(held.lease_ids[0] ?? '');
      const answer = await put(held.lease, OF_ALICE);
      await del(held.lease, { outcome: 'cancelled' }, OF_ALICE);
      return answer;
    },
  },
  hold_exceeded: {
    group: { holds: { max_hold_ms: 20_000 } },
    refuse: async ({ group }) => {
      const held = await leased({ group }, OF_ALICE);
      await passAwake(group, 20_001);
      return put(held.lease, OF_ALICE);
    },
  },
} satisfies Partial<Record<Reason, Row>>;

/** A row for every reason: one that is missing does not compile. */
export const ROWS: Record<Reason, Row> = { ...OF_GROUPS, ...OF_CALLS, ...OF_LEASES };

/** Configures a place for every reason. Returns the place of a reason. */
export async function prepareReasons(): Promise<(reason: Reason) => RefusalTarget> {
  const scopes = new Map<Reason, Strict>();
  const placeOf = (reason: Reason): RefusalTarget => {
    const name = reason.replaceAll('_', '-');
    const strict = scopes.get(reason);
    if (strict === undefined) throw new Error(reason);
    const upstream = `u-${name}`;
    return { upstream, group: `g-${name}`, chat: `/${upstream}/v1/chat/completions`, strict };
  };
  const limits = { limit: 20, turnLimit: 20 };
  await Promise.all(
    REASON_NAMES.map(async (reason) => scopes.set(reason, await strictScope('every', limits))),
  );
  const places = REASON_NAMES.map((reason) => ({ ...placeOf(reason), row: ROWS[reason] }));
  const hashes = await Promise.all([ALICE, GONE, BARRED].map(keyHash));
  const [alice = '', gone = '', barred = ''] = hashes;
  const revoked = { revoked_at: '2026-01-01T00:00:00.000Z' };
  await configure({
    upstreams: [
      ...places.map(({ upstream, strict, row }) => ({
        id: upstream,
        base_url: strict.url,
        ...row.upstream,
      })),
      { id: 'twin', base_url: 'https://twin.example', models: ['twin-*'] },
    ],
    groups: [
      ...places.map(({ upstream, group, row }) => ({
        name: group,
        match: { upstreams: [upstream] },
        ...row.group,
        holds: { ...NO_COOLDOWN, ...row.group?.holds },
      })),
      ...[1, 2, 3, 4].map((at) => ({
        name: `more-${at}`,
        match: { upstreams: ['u-too-many-groups'] },
      })),
    ],
    teams: [{ id: 'red' }],
    keys: [
      { id: 'alice', team: 'red', hash: alice },
      { id: 'gone', team: 'red', hash: gone, ...revoked },
      { id: 'barred', team: 'red', groups: ['none'], hash: barred },
    ],
    leases: 'open',
  });
  return placeOf;
}

/** Reads the reason of an answer, which is a response, or that of a lease. */
export async function reasonOf(answer: unknown): Promise<string | null> {
  if (!(answer instanceof Response)) return (answer as { readonly reason: string | null }).reason;
  if (answer.body?.locked === false) await answer.body.cancel();
  expect(answer.headers.get('headgate-reason')).not.toBe(null);
  return answer.headers.get('headgate-reason');
}

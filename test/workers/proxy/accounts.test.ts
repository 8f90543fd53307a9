// Keys that do not last: those of one account share its automatic group, once their upstream has taken them and not before.
// The upstream counts by account, whatever keys its calls come with, and knows no key that it was not told.
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import { AUTO_PREFIX, poolName } from '../../../src/contract/pool-name.ts';
import { nothingLeaks, pool } from '../support/pool.ts';
import { strictScope, type Settings, type Strict } from '../support/strict.ts';
import {
  admin,
  call as sendPlain,
  configure,
  env,
  open,
  until,
  type WorkerOpenCall,
} from '../support/worker.ts';

const GATEWAY_KEY = 'hg_accounts-key-1';

let strict: Strict;
let made = 0;
let keys: { id: string; hash: string }[] = [];

afterAll(nothingLeaks);

/** A token of the kind that clients of Z.ai sign by themselves, or anybody who writes one. */
function token(account: string): string {
  made += 1;
  const part = (value: object): string =>
    new TextEncoder()
      .encode(JSON.stringify(value))
      .toBase64({ alphabet: 'base64url', omitPadding: true });
  return `${part({ alg: 'HS256' })}.${part({ api_key: account, timestamp: made })}.c2lnbmF0dXJl`;
}

/** The assumed limit of this model at Z.ai is 2. */
const MODEL = 'glm-5';
const GROUP = `${AUTO_PREFIX}zai/glm-5`;

function ask(key: string, label: string, headers: Record<string, string> = {}): WorkerOpenCall {
  const json = { model: MODEL, stream: true, messages: [{ role: 'user', content: label }] };
  return open('/zai/v1/chat/completions', label, {
    json,
    headers: { authorization: `Bearer ${key}`, ...headers },
  });
}

async function fingerprintOf(key: string): Promise<string> {
  const { json } = await admin('POST', '/fingerprint', { key });
  return json.fingerprint as string;
}

/** The pools of accounts in a group, as the directory lists them. */
async function accountPools(group: string): Promise<string[]> {
  const pools = await directoryOf(env).pools();
  return pools.flatMap((one) => {
    const { partition } = one;
    return one.group === group && partition?.startsWith('acct_') === true ? [partition] : [];
  });
}

async function statusesOf(calls: readonly WorkerOpenCall[]): Promise<number[]> {
  const answers = await Promise.all(calls.map(({ response }) => response));
  await Promise.all(calls.map(({ end }) => end));
  return answers.map(({ status }) => status);
}

/** Has a key taken by the upstream, and returns the pool of its account. */
async function taken(key: string, headers: Record<string, string> = {}): Promise<string> {
  const before = await accountPools(GROUP);
  expect(await statusesOf([ask(key, 'taken', headers)])).toEqual([200]);
  let found: string[] = [];
  await until(async () => {
    found = (await accountPools(GROUP)).filter((one) => !before.includes(one));
    expect(found).toHaveLength(1);
  });
  return poolName(GROUP, found[0] ?? null);
}

const TAKES_A_WHILE = { chunks: 4, chunkDelayMs: 15 };

async function begin(accounts: Record<string, string>, settings: Settings = {}): Promise<void> {
  strict = await strictScope('accounts', {
    accounts,
    accountLimit: 2,
    ...TAKES_A_WHILE,
    ...settings,
  });
  await configure({ upstreams: [{ id: 'zai', base_url: strict.url }], keys });
}

describe('behind a gateway key', () => {
  beforeEach(async () => {
    const { json } = await admin('POST', '/fingerprint', { key: GATEWAY_KEY });
    keys = [{ id: 'team', hash: json.hash as string }];
  });

  it('an account is never asked for more than its limit while its tokens change', async () => {
    const tokens = [token('mine'), token('mine'), token('mine')];
    await begin(Object.fromEntries(tokens.map((one) => [one, 'mine'])));
    const [first = ''] = tokens;
    const headers = { 'headgate-key': GATEWAY_KEY };
    const account = await taken(first, headers);
    await strict.configure({ silentAfterChunks: 1 });
    const calls: WorkerOpenCall[] = [];
    for (const one of tokens) {
      for (const n of [1, 2, 3, 4]) calls.push(ask(one, `${n}`, headers));
      const waiting = { in_use: 2, queued: calls.length - 2 };
      await until(async () => expect(await pool(account).status()).toMatchObject(waiting));
    }
    expect((await strict.stats()).accounts['mine']).toMatchObject({ peak: 2, total: 3 });
    await strict.configure({ silentAfterChunks: null });
    await strict.resume();
    expect(await statusesOf(calls)).toEqual(calls.map(() => 200));
    const { accounts, rejected429 } = await strict.stats();
    expect(accounts['mine']).toMatchObject({ peak: 2, total: 13 });
    expect(rejected429).toBe(0);
  });
});

describe('of strangers', () => {
  beforeEach(() => {
    keys = [];
  });

  it('tokens that change in mid-run share what their account has, and no caller is refused', async () => {
    const tokens = [token('shared'), token('shared'), token('shared')];
    await begin(Object.fromEntries(tokens.map((one) => [one, 'shared'])));
    const account = await taken(tokens[0] ?? '');
    await strict.configure({ silentAfterChunks: 1 });
    const calls: WorkerOpenCall[] = [];
    for (const one of tokens) {
      for (const n of [1, 2, 3, 4]) calls.push(ask(one, `${n}`));
      // The next token comes while the account is full, and all that this one has to ask waits in one queue.
      const queued = calls.length - 2;
      await until(async () =>
        expect(await pool(account).status()).toMatchObject({ in_use: 2, queued }),
      );
    }
    // Of each new token one call was sent beside the others, to find out whose it is.
    const { accounts, refused } = await strict.stats();
    expect(accounts['shared']).toMatchObject({ peak: 3, total: 5 });
    expect(refused).toEqual({ concurrency: 2 });
    expect(await pool(account).status()).toMatchObject({ limit: { effective: 2 } });
    await strict.configure({ silentAfterChunks: null });
    await strict.resume();
    expect(await statusesOf(calls)).toEqual(calls.map(() => 200));
    expect((await strict.stats()).accounts['shared']).toMatchObject({ peak: 3, total: 15 });
  });

  it('a call that finds out whose its token is counts in that pool from then on', async () => {
    const mine = token('moved');
    await begin({ [mine]: 'moved' }, { silentAfterChunks: 1 });
    const call = ask(mine, 'streams');
    expect((await call.response).status).toBe(200);
    const own = poolName(GROUP, await fingerprintOf(mine));
    await until(async () => expect(await pool(own).status()).toMatchObject({ in_use: 0 }));
    await strict.configure({ silentAfterChunks: null });
    const next = ask(mine, 'next');
    await strict.resume();
    expect(await statusesOf([call, next])).toEqual([200, 200]);
    expect(await pool(own).isVerified()).toBe(false);
  });

  it('a token that nobody has taken has no slot of the account that it names', async () => {
    const mine = token('victim');
    await begin({ [mine]: 'victim' });
    const account = await taken(mine);
    const before = await pool(account).decisions({});
    const forged = [token('victim'), token('victim'), token('victim')];
    const calls = forged.flatMap((one) => [ask(one, 'forged'), ask(one, 'forged too')]);
    expect(await statusesOf(calls)).toEqual(calls.map(() => 401));
    expect(await pool(account).decisions({})).toEqual(before);
    expect((await strict.stats()).accounts['victim']).toMatchObject({ total: 1 });
  });

  const TOO_MANY = 'Too many concurrent requests';

  it.each([
    ['a page', 'text/html', `<html><title>${TOO_MANY}</title></html>`],
    ['words', 'text/plain', TOO_MANY],
    [
      'JSON',
      'application/json',
      JSON.stringify({ cloudflare_error: true, error_code: 1015, detail: TOO_MANY }),
    ],
  ])('a token that only an edge has refused is not taken: %s', async (form, type, body) => {
    const mine = token(form);
    await begin({ [mine]: form });
    const account = await taken(mine);
    const before = await pool(account).decisions({});
    const refused = { status: 429, headers: { 'content-type': type, server: 'cloudflare' } };
    const fetched = vi
      .spyOn(globalThis, 'fetch')
      .mockImplementation(() => Promise.resolve(new Response(body, refused)));
    try {
      const call = ask(token(form), 'forged', { 'headgate-max-wait': '0' });
      expect(await statusesOf([call])).toEqual([429]);
      expect(fetched).toHaveBeenCalledOnce();
    } finally {
      fetched.mockRestore();
    }
    expect(await pool(account).decisions({})).toEqual(before);
  });

  it('a token has one call at a time until it was taken', async () => {
    const mine = token('probing');
    const firstByteDelayMs = 300;
    await begin({ [mine]: 'probing' }, { firstByteDelayMs });
    const calls = [1, 2, 3].map((n) => ask(mine, `${n}`));
    expect(await statusesOf(calls)).toEqual([200, 200, 200]);
    const [first, second] = (await strict.stats()).arrivals;
    // Timers of the upstream may be a little early, by another clock than the one that it tells of.
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThan(0.9 * firstByteDelayMs);
  });

  it('a token that is taken no more is one that nobody knows', async () => {
    const mine = token('revoked');
    await begin({ [mine]: 'revoked' });
    const account = await taken(mine);
    await strict.configure({ accounts: {} });
    expect(await statusesOf([ask(mine, 'revoked')])).toEqual([401]);
    const before = await pool(account).decisions({});
    expect(await statusesOf([ask(mine, 'again')])).toEqual([401]);
    expect(await pool(account).decisions({})).toEqual(before);
    expect(before).toHaveLength(1);
  });
});

describe('of a provider whose answers name the account', () => {
  const OAUTH = `${AUTO_PREFIX}anthropic`;

  function send(key: string, label: string): WorkerOpenCall {
    const messages = [{ role: 'user', content: label }];
    const json = { model: 'claude-haiku-4-5', max_tokens: 9, stream: true, messages };
    const headers = { authorization: `Bearer ${key}`, 'anthropic-version': '2023-06-01' };
    return open('/anthropic/v1/messages', label, { json, headers });
  }

  async function beginAnthropic(accounts: Record<string, string>): Promise<void> {
    keys = [];
    const accountHeader = 'anthropic-organization-id';
    strict = await strictScope('accounts', { accounts, accountHeader, ...TAKES_A_WHILE });
    await configure({ upstreams: [{ id: 'anthropic', base_url: strict.url }] });
  }

  it('tokens of one organization share a pool, and its keys have one each', async () => {
    const tokens = ['sk-ant-oat01-one', 'sk-ant-oat01-two', 'sk-ant-api03-static'];
    await beginAnthropic(Object.fromEntries(tokens.map((one) => [one, 'org_1'])));
    for (const one of tokens) expect(await statusesOf([send(one, one)])).toEqual([200]);
    const partitions = (): Promise<(string | null)[]> =>
      directoryOf(env)
        .pools()
        .then((pools) => pools.filter(({ group }) => group === OAUTH))
        .then((pools) => pools.map(({ partition }) => partition));
    const [, , last = ''] = tokens;
    const own = await fingerprintOf(last);
    await until(async () => expect(await partitions()).toContain(own));
    expect(await partitions()).toHaveLength(2);
    const account = (await partitions()).find((one) => one !== own) ?? '';
    expect(account).toMatch(/^acct_[0-9a-f]{24}$/);
    const again = tokens.map((one) => send(one, 'again'));
    expect(await statusesOf(again)).toEqual([200, 200, 200]);
    const decisions = await pool(poolName(OAUTH, account)).decisions({});
    expect(decisions.map(({ tenant }) => tenant)).toEqual([account, account]);
  });

  it('a token whose answers name nobody has a pool of its own', async () => {
    const alone = 'sk-ant-oat01-alone';
    await beginAnthropic({ [alone]: 'org_2' });
    await strict.configure({ accountHeader: null });
    const before = await accountPools(OAUTH);
    expect(await statusesOf([send(alone, 'first')])).toEqual([200]);
    expect(await statusesOf([send(alone, 'then'), send(alone, 'too')])).toEqual([200, 200]);
    await until(async () => expect(await accountPools(OAUTH)).toHaveLength(before.length + 1));
  });
});

describe('by the word of the operator', () => {
  const header = 'x-account';
  const SPLIT = `${AUTO_PREFIX}named`;

  async function beginNamed(gateway: boolean): Promise<void> {
    const { json } = await admin('POST', '/fingerprint', { key: GATEWAY_KEY });
    keys = gateway ? [{ id: 'team', hash: json.hash as string }] : [];
    strict = await strictScope('accounts', { silentAfterChunks: 1 });
    const account_by = `header:${header}`;
    await configure({ upstreams: [{ id: 'named', base_url: strict.url, account_by }], keys });
  }

  async function sendNamed(key: string, headers: Record<string, string>): Promise<WorkerOpenCall> {
    const { inFlight } = await strict.stats();
    const all = { authorization: `Bearer ${key}`, [header]: 'billing-7', ...headers };
    const call = open('/named/v1/chat/completions', key, { headers: all });
    await until(async () => expect((await strict.stats()).inFlight).toBe(inFlight + 1));
    return call;
  }

  async function finish(calls: readonly WorkerOpenCall[]): Promise<void> {
    await strict.configure({ silentAfterChunks: null });
    await strict.resume();
    expect(await Promise.all(calls.map(({ end }) => end))).toEqual(calls.map(() => 'done'));
  }

  it('a header names the account of callers with a gateway key, whatever key they bring', async () => {
    await beginNamed(true);
    const gateway = { 'headgate-key': GATEWAY_KEY };
    const calls = [await sendNamed('sk-n1', gateway), await sendNamed('sk-n2', gateway)];
    await finish(calls);
    await until(async () => expect(await accountPools(SPLIT)).toHaveLength(1));
    const [account = ''] = await accountPools(SPLIT);
    expect(await pool(poolName(SPLIT, account)).decisions({})).toHaveLength(2);
    expect(account).not.toContain('billing');
  });

  it('a stranger that writes the header has the pool of its own key', async () => {
    await beginNamed(false);
    const call = await sendNamed('sk-stranger', {});
    const own = poolName(SPLIT, await fingerprintOf('sk-stranger'));
    expect(await pool(own).status()).toMatchObject({ in_use: 1 });
    await finish([call]);
  });
});

it('a caller is told of its calls in the pool of its account, and nobody who only claims to be of it', async () => {
  keys = [];
  const mine = token('told');
  await begin({ [mine]: 'told' });
  const account = await taken(mine);
  await strict.configure({ silentAfterChunks: 1 });
  const calling = ask(mine, 'streams');
  await until(async () => expect(await pool(account).status()).toMatchObject({ in_use: 1 }));
  const groupsOf = async (key: string): Promise<{ name: string; partition: string | null }[]> => {
    const response = await sendPlain('/status', { headers: { authorization: `Bearer ${key}` } });
    const { groups } = (await response.json()) as { groups: [] };
    return groups;
  };
  const shown = { name: GROUP, partition: account.split('#')[1], in_flight: 1 };
  expect(await groupsOf(mine)).toMatchObject([shown]);
  expect(await groupsOf(token('told'))).toEqual([]);
  await strict.configure({ silentAfterChunks: null });
  await strict.resume();
  expect(await statusesOf([calling])).toEqual([200]);
});

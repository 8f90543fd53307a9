// The list of models: each key requests it from an upstream once a minute, however often callers ask.
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { strictScope, type Strict } from '../support/strict.ts';
import { passTime } from '../support/time.ts';
import { admin, call, configure, until } from '../support/worker.ts';

let strict: Strict;

beforeAll(async () => {
  strict = await strictScope('kept-lists');
  await configure({
    upstreams: [{ id: 'up', base_url: strict.url }],
    default_upstream: 'up',
  });
});

interface KeptList {
  readonly data: readonly { readonly id: string }[];
}

async function list(key: string, headers: Record<string, string> = {}): Promise<KeptList> {
  const answer = await call('/v1/models', {
    headers: { authorization: `Bearer ${key}`, ...headers },
  });
  expect(answer.status).toBe(200);
  return answer.json();
}

async function asked(): Promise<number> {
  return (await strict.stats()).uncounted;
}

it('is requested once per key, also for many simultaneous requests', async () => {
  const before = await asked();
  const all = await Promise.all(Array.from({ length: 20 }, () => list('sk-one')));
  expect(await asked()).toBe(before + 1);
  expect(all[0]?.data.length).toBeGreaterThan(0);
  for (const each of all) expect(each).toEqual(all[0]);
  expect(await list('sk-one')).toEqual(all[0]);
  expect(await asked()).toBe(before + 1);
});

it('is separate for each key, and for each account that a key names', async () => {
  const before = await asked();
  await list('sk-two');
  await list('sk-three');
  await list('sk-three', { 'openai-organization': 'org-1' });
  await list('sk-three', { 'openai-organization': 'org-1' });
  await list('sk-three', { 'user-agent': 'another' });
  expect(await asked()).toBe(before + 3);
});

it('is requested at most ten times a minute per key, whatever other headers its requests have', async () => {
  const before = await asked();
  for (let at = 0; at < 30; at += 1) await list('sk-four', { 'openai-project': `p-${at}` });
  expect(await asked()).toBe(before + 10);
});

describe('with answers of its own', () => {
  afterEach(() => vi.restoreAllMocks());

  const page = (ids: readonly string[], more: object = {}): Response =>
    Response.json({ object: 'list', data: ids.map((id) => ({ id })), ...more });

  /** Has the upstream answer, and returns the URLs that it was asked for. */
  function answering(answer: (url: URL) => Promise<Response> | Response): string[] {
    const urls: string[] = [];
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input) => {
      const url = new URL(input as string);
      urls.push(`${url.pathname.replace(/^.*(?=\/models)/, '')}${url.search}`);
      return answer(url);
    });
    return urls;
  }

  async function listed(key: string): Promise<{ ids: string[]; missing: string | null }> {
    const answer = await call('/v1/models', {
      headers: { authorization: `Bearer ${key}` },
    });
    const { data } = await answer.json<KeptList>();
    return { ids: data.map(({ id }) => id), missing: answer.headers.get('headgate-missing') };
  }

  it('shows the pages that have come in time, and the rest to the next caller', async () => {
    let isThere = false;
    const urls = answering(async ({ search }) => {
      if (search === '') return page(['a'], { has_more: true });
      await until(() => expect(isThere).toBe(true));
      return page(['b']);
    });
    expect(await listed('sk-late')).toEqual({ ids: ['up/a'], missing: 'up;reason=timeout' });
    // Nobody waits again for an upstream that is slow already.
    expect(await listed('sk-late')).toEqual({ ids: ['up/a'], missing: 'up;reason=timeout' });
    isThere = true;
    await until(async () => {
      expect(await listed('sk-late')).toEqual({ ids: ['up/a', 'up/b'], missing: null });
    });
    expect(urls).toEqual(['/models', '/models?after=a&after_id=a']);
  });

  it('does not keep a failed or partial list as a whole one', async () => {
    let isWell = false;
    answering(({ search }) => {
      if (search === '') return page(['a'], { has_more: true });
      return isWell ? page(['b']) : new Response('busy', { status: 503 });
    });
    expect(await listed('sk-partial')).toEqual({ ids: ['up/a'], missing: 'up;reason=status_503' });
    isWell = true;
    await until(async () => {
      expect(await listed('sk-partial')).toEqual({ ids: ['up/a', 'up/b'], missing: null });
    });
  });

  it('forgets lists when the configuration changes', async () => {
    let id = 'before';
    const urls = answering(() => page([id]));
    expect((await listed('sk-change')).ids).toEqual(['up/before']);
    id = 'after';
    expect((await listed('sk-change')).ids).toEqual(['up/before']);
    vi.restoreAllMocks();
    await configure({
      upstreams: [{ id: 'up', base_url: strict.url }],
      default_upstream: 'up',
      groups: [{ name: 'other' }],
    });
    const again = answering(() => page([id]));
    expect((await listed('sk-change')).ids).toEqual(['up/after']);
    expect([urls.length, again.length]).toEqual([1, 1]);
  });

  it('is bounded in pages and bytes, also where an upstream never ends', async () => {
    let at = 0;
    const urls = answering(() => page([`m-${(at += 1)}`], { has_more: true }));
    const endless = await listed('sk-endless');
    expect(endless).toMatchObject({ missing: 'up;reason=too_long' });
    expect([urls.length, endless.ids.length]).toEqual([50, 50]);
    vi.restoreAllMocks();
    const same = answering(() => page(['same'], { has_more: true }));
    expect(await listed('sk-same')).toEqual({ ids: ['up/same'], missing: 'up;reason=unreadable' });
    expect(same).toHaveLength(2);
  });

  it('logs once what is missing, and counts the lists that lacked it', async () => {
    const lines = vi.spyOn(console, 'log');
    answering(() => new Response('<html>'));
    for (const key of ['sk-odd-1', 'sk-odd-2', 'sk-odd-3']) {
      expect(await listed(key)).toEqual({ ids: [], missing: 'up;reason=unreadable' });
    }
    const logged = lines.mock.calls.map(([line]) => String(line));
    const reported = logged.filter((line) => line.includes('models_missing'));
    // The upstream that ignored where to continue was logged before, for the same reason.
    expect(reported.length).toBeLessThanOrEqual(1);
    expect(logged.join()).not.toContain('sk-odd');
  });

  it('is asked with the key of a Gemini client that sends it in the query', async () => {
    let sent: Headers | null = null;
    vi.spyOn(globalThis, 'fetch').mockImplementation((_, init) => {
      sent = new Headers(init?.headers);
      return Promise.resolve(page(['g']));
    });
    const answer = await call('/v1beta/models?key=sk-in-query');
    expect(await answer.json()).toEqual({ models: [{ name: 'models/up/g', displayName: 'g' }] });
    expect((sent as Headers | null)?.get('authorization')).toBe('Bearer sk-in-query');
  });

  it('is not shared by callers whose keys stand in unknown places', async () => {
    let at = 0;
    answering(() => page([`m-${(at += 1)}`]));
    const listedTo = async (token: string): Promise<string | undefined> => {
      const answer = await call('/v1/models', { headers: { 'x-custom-token': token } });
      return (await answer.json<KeptList>()).data[0]?.id;
    };
    const first = await listedTo('secret-of-one');
    expect(await listedTo('secret-of-two')).not.toBe(first);
    expect(await listedTo('secret-of-one')).toBe(first);
  });

  it('shows the last list to a key that asked too often', async () => {
    const urls = answering(() => page(['a'], { data: [{ id: 'a' }, {}] }));
    for (let at = 0; at < 12; at += 1) {
      const found = await listed('sk-often');
      expect(found).toEqual({ ids: ['up/a'], missing: 'up;reason=unreadable' });
      passTime(4_900);
    }
    expect(urls.length).toBeLessThanOrEqual(10);
  });

  it('is not spoiled for other keys by the headers of one, where callers share it', async () => {
    const secret = { secret: 'UPSTREAM_TEST_KEY' };
    const keys = ['one', 'two'].map(async (id) => {
      const { json } = await admin('POST', '/fingerprint', { key: `hg_shared-${id}` });
      return { id, hash: json.hash as string };
    });
    await configure({
      upstreams: [
        { id: 'paid', base_url: strict.url, dialect: 'anthropic', auth: secret },
        { id: 'free', base_url: strict.url, auth: 'none' },
      ],
      keys: await Promise.all(keys),
    });
    const sent: Headers[] = [];
    vi.spyOn(globalThis, 'fetch').mockImplementation((_, init) => {
      const headers = new Headers(init?.headers);
      sent.push(headers);
      const isOdd = headers.has('if-none-match') || headers.get('anthropic-version') === 'odd';
      return Promise.resolve(isOdd ? new Response(null, { status: 304 }) : page(['a']));
    });
    for (let at = 0; at < 20; at += 1) {
      const odd = { 'if-none-match': '"x"', range: 'bytes=0-1', 'anthropic-version': 'odd' };
      const headers = {
        authorization: 'Bearer hg_shared-one',
        'openai-project': `p-${at}`,
        ...odd,
      };
      await call('/v1/models', { headers });
    }
    expect(await listed('hg_shared-two')).toEqual({ ids: ['paid/a', 'free/a'], missing: null });
    expect(sent).toHaveLength(2);
  });

  it('answers a HEAD as a GET, without its body', async () => {
    const urls = answering(() => page(['a']));
    const headers = { authorization: 'Bearer hg_shared-one' };
    const answer = await call('/v1/models', { method: 'HEAD', headers });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json']);
    expect(urls.length).toBeLessThanOrEqual(2);
  });

  it('names an upstream whose secret is not set', async () => {
    const { json } = await admin('POST', '/fingerprint', { key: 'hg_kept-lists' });
    await configure({
      upstreams: [{ id: 'up', base_url: strict.url, auth: { secret: 'UPSTREAM_NOT_SET' } }],
      keys: [{ id: 'k', hash: json.hash as string }],
    });
    expect(await listed('hg_kept-lists')).toEqual({ ids: [], missing: 'up;reason=secret_missing' });
  });
});

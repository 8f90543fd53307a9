// Who may call, and which key the upstream gets to see. The upstream echoes what it got.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, configure, until, type CallInit } from '../support/worker.ts';

const GATEWAY_KEY = 'hg_gateway-key-0815';
/** As the test pool binds `UPSTREAM_TEST_KEY`. */
const SECRET = 'operator-secret-4711';
const CREDENTIALS = ['authorization', 'x-api-key', 'x-goog-api-key', 'api-key', 'headgate-key'];

let strict: Strict;
let keys: { id: string; hash: string }[] = [];

function upstreams() {
  const base_url = strict.url;
  const auth = { secret: 'UPSTREAM_TEST_KEY' };
  return [
    { id: 'open', base_url },
    { id: 'secret-openai', base_url, auth },
    { id: 'secret-claude', base_url, auth, dialect: 'anthropic' as const },
    { id: 'secret-gemini', base_url, auth, dialect: 'gemini' as const },
    { id: 'secret-azure', base_url, auth, dialect: 'azure' as const },
    { id: 'unset', base_url, auth: { secret: 'UPSTREAM_NOT_SET' } },
  ];
}

beforeAll(async () => {
  strict = await strictScope('keys', { echo: true });
  const { json } = await admin('POST', '/fingerprint', { key: GATEWAY_KEY });
  keys = [{ id: 'team-a', hash: json.hash as string }];
});

afterAll(nothingLeaks);

const BODY = { model: 'm', messages: [] };

interface KeysSeen {
  readonly status: number;
  readonly reason: string | null;
  /** The credentials that the upstream got. */
  readonly sent: Record<string, string>;
  readonly query: string;
  /** Everything that the caller got, in one text. */
  readonly text: string;
}

async function ask(path: string, headers: Record<string, string>): Promise<KeysSeen> {
  const init: CallInit = { json: BODY, headers };
  const response = await call(path, init);
  const text = await response.text();
  const echo =
    response.status === 200
      ? (JSON.parse(text) as { headers: Record<string, string>; query: string })
      : { headers: {}, query: '' };
  return {
    status: response.status,
    reason: response.headers.get('headgate-reason'),
    sent: Object.fromEntries(
      Object.entries(echo.headers).filter(([name]) => CREDENTIALS.includes(name)),
    ),
    query: echo.query,
    text: JSON.stringify([...response.headers]) + text,
  };
}

describe('without gateway keys', () => {
  beforeAll(() => configure({ upstreams: upstreams() }));

  it("a caller's provider key passes on as it came", async () => {
    const seen = await ask('/open/v1/chat/completions', { authorization: 'Bearer sk-mine' });
    expect(seen).toMatchObject({ status: 200, sent: { authorization: 'Bearer sk-mine' } });
  });

  it("an upstream with the operator's key answers 401 and says what it wants", async () => {
    const { total } = await strict.stats();
    for (const headers of [{}, { authorization: 'Bearer sk-mine' }]) {
      const seen = await ask('/secret-openai/v1/chat/completions', headers);
      expect(seen).toMatchObject({ status: 401, reason: 'key_missing' });
      expect(seen.text).toContain('headgate-key');
      expect(seen.text).not.toContain(SECRET);
    }
    expect((await strict.stats()).total).toBe(total);
  });
});

describe('with gateway keys', () => {
  beforeAll(() => configure({ upstreams: upstreams(), keys }));

  it('a call without one is refused', async () => {
    const seen = await ask('/open/v1/chat/completions', { authorization: 'Bearer sk-mine' });
    expect(seen).toMatchObject({ status: 401, reason: 'key_missing' });
    expect(seen.text).not.toContain('sk-mine');
  });

  it('/ says that one is to be sent', async () => {
    const text = await (await call('/')).text();
    expect(text).toContain('send a gateway key, in the header headgate-key or as the API key');
    expect(text).toMatch(/Gateway keys +1 configured/);
  });

  it.each<[string, Record<string, string>]>([
    ['/open/v1/chat/completions', { 'headgate-key': 'hg_wrong' }],
    ['/open/v1/chat/completions', { authorization: 'Bearer hg_wrong' }],
    ['/open/v1/chat/completions?key=hg_wrong', {}],
    ['/open/v1/chat/completions', { 'headgate-key': 'no-prefix' }],
  ])('an unknown one is refused: %s %j', async (path, headers) => {
    const seen = await ask(path, headers);
    expect(seen).toMatchObject({ status: 401, reason: 'key_invalid' });
    expect(seen.text).not.toMatch(/hg_wrong|no-prefix/);
  });

  it.each<[string, string, Record<string, string>]>([
    ['headgate-key', '', { 'headgate-key': GATEWAY_KEY }],
    ['a bearer token', '', { authorization: `Bearer ${GATEWAY_KEY}` }],
    ['x-api-key', '', { 'x-api-key': GATEWAY_KEY }],
    ['x-goog-api-key', '', { 'x-goog-api-key': GATEWAY_KEY }],
    ['api-key', '', { 'api-key': GATEWAY_KEY }],
    ['the query', `?key=${GATEWAY_KEY}`, {}],
  ])('the right one is taken and removed wherever it stands: %s', async (_, query, headers) => {
    const seen = await ask(`/open/v1/chat/completions${query}`, headers);
    expect(seen).toMatchObject({ status: 200, sent: {}, query: '' });
    expect(seen.text).not.toContain(GATEWAY_KEY);
  });

  it.each<[string, Record<string, string>]>([
    ['twice in one header', { authorization: `Bearer ${GATEWAY_KEY}, Bearer ${GATEWAY_KEY}` }],
    ['in two headers', { authorization: `Bearer ${GATEWAY_KEY}`, 'api-key': GATEWAY_KEY }],
    ['behind Bearer Bearer', { authorization: `Bearer Bearer ${GATEWAY_KEY}` }],
    ['in quotes', { 'x-api-key': `"${GATEWAY_KEY}"` }],
    ['in quotes in its own header', { 'headgate-key': `"${GATEWAY_KEY}"` }],
    ['in lower case, with white space', { authorization: `bearer   ${GATEWAY_KEY} ` }],
  ])('a miswritten one is taken, and the upstream gets its own key: %s', async (_, headers) => {
    const seen = await ask('/secret-openai/v1/chat/completions', headers);
    expect(seen).toMatchObject({ status: 200, sent: { authorization: `Bearer ${SECRET}` } });
    expect(seen.text).not.toContain(GATEWAY_KEY);
  });

  it.each<[string, Record<string, string>]>([
    ['in one header', { authorization: `Bearer ${GATEWAY_KEY}, Bearer hg_another` }],
    ['in two headers', { authorization: `Bearer ${GATEWAY_KEY}`, 'x-api-key': 'hg_another' }],
    ['beside headgate-key', { 'headgate-key': GATEWAY_KEY, authorization: 'Bearer hg_another' }],
    ['with a provider key in one header', { authorization: `Bearer sk-1, Bearer ${GATEWAY_KEY}` }],
  ])('two keys are refused, and nothing goes out: %s', async (_, headers) => {
    const { total } = await strict.stats();
    const seen = await ask('/open/v1/chat/completions', headers);
    expect(seen).toMatchObject({ status: 401, reason: 'key_invalid' });
    expect(seen.text).toMatch(/two different gateway keys|and another key/);
    expect((await strict.stats()).total).toBe(total);
  });

  it('no copy of it goes upstream: in another header, a cookie, a parameter', async () => {
    const seen = await ask(`/open/v1/chat/completions?trace=${GATEWAY_KEY}&n=1`, {
      'headgate-key': GATEWAY_KEY,
      'x-request-id': GATEWAY_KEY,
      referer: `https://app.test/?key=${GATEWAY_KEY}`,
      cookie: `k=${GATEWAY_KEY}; headgate_session=e.y.J; theirs=1`,
    });
    expect(seen).toMatchObject({ status: 200, query: 'n=1' });
    expect(seen.text).not.toContain(GATEWAY_KEY);
    expect(seen.text).not.toContain('headgate_session');
    expect(seen.text).toContain('theirs=1');
  });

  it("the caller's provider key beside it passes on, even to an upstream with a secret", async () => {
    for (const upstream of ['open', 'secret-openai']) {
      const seen = await ask(`/${upstream}/v1/chat/completions`, {
        'headgate-key': GATEWAY_KEY,
        authorization: 'Bearer sk-mine',
      });
      expect(seen).toMatchObject({ status: 200, sent: { authorization: 'Bearer sk-mine' } });
      expect(seen.text).not.toContain(SECRET);
    }
  });

  it.each<[string, Record<string, string>]>([
    ['/secret-openai/v1/chat/completions', { authorization: `Bearer ${SECRET}` }],
    ['/secret-claude/v1/messages', { 'x-api-key': SECRET }],
    ['/secret-gemini/v1beta/models/m:generateContent', { 'x-goog-api-key': SECRET }],
    ['/secret-gemini/v1beta/openai/chat/completions', { authorization: `Bearer ${SECRET}` }],
    ['/secret-azure/openai/v1/chat/completions', { 'api-key': SECRET }],
  ])("the operator's key goes where the upstream wants it: %s", async (path, sent) => {
    for (const headers of [
      { 'headgate-key': GATEWAY_KEY },
      { authorization: `Bearer ${GATEWAY_KEY}` },
      { 'x-api-key': GATEWAY_KEY },
    ]) {
      expect(await ask(path, headers)).toMatchObject({ status: 200, sent });
    }
  });

  it("an operator's key that is not set is named, and nothing is called", async () => {
    const { total } = await strict.stats();
    const seen = await ask('/unset/v1/chat/completions', { 'headgate-key': GATEWAY_KEY });
    expect(seen).toMatchObject({ status: 424, reason: 'secret_missing' });
    expect(seen.text).toContain('UPSTREAM_NOT_SET');
    expect(seen.text).toContain('["x-should-retry","false"]');
    expect((await strict.stats()).total).toBe(total);
  });

  it('calls of one gateway key are charged to it, whatever provider key they bring', async () => {
    await configure({
      upstreams: upstreams(),
      keys,
      groups: [{ name: 'each', partition_by: ['caller'], limits: { max_concurrency: 8 } }],
    });
    for (const authorization of ['Bearer sk-1', 'Bearer sk-2']) {
      await ask('/open/v1/chat/completions', { 'headgate-key': GATEWAY_KEY, authorization });
    }
    await until(async () =>
      expect((await admin('GET', '/groups/each/status')).json.partitions).toMatchObject([
        { partition: 'team-a', granted_total: 2 },
      ]),
    );
  });

  it('no key stands in the configuration, the status, the audit log or on the home page', async () => {
    const pages = await Promise.all(
      ['/config', '/status', '/audit', '/groups/each/leases', '/groups/each/status'].map(
        async (path) => JSON.stringify((await admin('GET', path)).json),
      ),
    );
    pages.push(await (await call('/')).text());
    for (const page of pages) expect(page).not.toMatch(/operator-secret|hg_gateway|sk-[12m]/);
  });
});

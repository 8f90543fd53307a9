// A gateway key in whatever place of a call, and the bytes that an upstream receives.
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

const KEY = `hg_${randomBytes(24).toString('hex')}`;
const OPERATOR_KEY = 'sk-of-the-operator';

let stage: LifecycleStage;

beforeAll(async () => {
  const hash = `sha256:${createHash('sha256').update(KEY).digest('hex')}`;
  stage = await startStage({
    upstream: { chunks: 1, keepsRequests: true },
    env: { UPSTREAM_OURS: OPERATOR_KEY },
    config: ({ url }) => ({
      upstreams: [
        { id: 'open', base_url: url },
        { id: 'ours', base_url: url, auth: { secret: 'UPSTREAM_OURS' } },
      ],
      groups: [
        {
          name: 'all',
          match: { upstreams: ['open', 'ours'] },
          limits: { max_concurrency: 4 },
        },
      ],
      keys: [{ id: 'team', hash, allow: ['files'] }],
    }),
  });
});

beforeEach(() => stage.upstream.reset());
afterAll(() => stage.close());

/** A form, as a client encodes it. */
interface Encoded {
  readonly type: string;
  readonly body: Buffer;
}

async function encoded(form: FormData | URLSearchParams): Promise<Encoded> {
  const response = new Response(form);
  const type = response.headers.get('content-type') ?? '';
  return { type, body: Buffer.from(await response.arrayBuffer()) };
}

function multipart(fields: Readonly<Record<string, string>>, fileBytes: number): Promise<Encoded> {
  const form = new FormData();
  form.set('model', 'whisper-1');
  form.set('file', new Blob([randomBytes(fileBytes)]), 'a.wav');
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return encoded(form);
}

const urlencoded = (fields: Readonly<Record<string, string>>): Promise<Encoded> =>
  encoded(new URLSearchParams({ model: 'whisper-1', ...fields }));

/** Sends a form, with the key in every place where one may stand beside it. */
function send(path: string, { type, body }: Encoded): Promise<Response> {
  const odd = { 'x-team-token': KEY, 'x-session': `a=1, Bearer ${KEY}`, 'x-hop': `b%20${KEY}` };
  const own: Record<string, string> = path.startsWith('/open')
    ? { authorization: 'Bearer sk-mine' }
    : {};
  const query = `?lang=de&token=${KEY}&page=2&next=%68g_${KEY.slice(3)}`;
  return fetch(`${stage.url()}${path}${query}`, {
    method: 'POST',
    headers: {
      'headgate-key': KEY,
      'content-type': type,
      cookie: `theme=dark; session=${KEY}; last=1`,
      'x-plain': 'stays',
      ...odd,
      ...own,
    },
    body,
  });
}

/** All that the upstream received, as text. */
function receivedText(): string {
  return stage.upstream
    .received()
    .map(({ target, rawHeaders, chunks }) =>
      [target, ...rawHeaders, Buffer.concat(chunks).toString('latin1')].join('\n'),
    )
    .join('\n');
}

const PATHS = [
  '/open/v1/audio/transcriptions',
  '/ours/v1/audio/transcriptions',
  '/open/v1/files',
  '/ours/v1/files',
];

it.each(PATHS)(
  'is taken out of headers, cookies and parameters, and the form is the same: %s',
  async (path) => {
    const speaks = { prompt: `keys are written ${KEY.slice(0, 3)}…` };
    for (const form of [await multipart(speaks, 700_000), await urlencoded(speaks)]) {
      stage.upstream.reset();
      const answer = await send(path, form);
      await answer.arrayBuffer();
      const [request, ...others] = stage.upstream.received();
      expect(others).toEqual([]);
      expect(Buffer.concat(request?.chunks ?? []).equals(form.body)).toBe(true);
      const { rawHeaders = [], target = '' } = request ?? {};
      const head = [target, ...rawHeaders].join('\n');
      expect(head).not.toContain('hg_');
      expect(head).not.toContain(KEY.slice(3));
      expect(target).toContain('lang=de&page=2');
      const text = head.toLowerCase();
      expect(text).toContain('theme=dark; last=1');
      expect(text).toContain('x-plain\nstays');
      expect(text).toContain(form.type.toLowerCase());
      expect(text).toContain(
        path.startsWith('/open') ? 'bearer sk-mine' : `bearer ${OPERATOR_KEY}`,
      );
    }
  },
);

it.each(PATHS)('in a field of a form goes nowhere, and the field is named: %s', async (path) => {
  for (const form of [await multipart({ token: KEY }, 1_000), await urlencoded({ token: KEY })]) {
    const refused = await send(path, form);
    expect([refused.status, refused.headers.get('headgate-reason')]).toEqual([
      400,
      'body_unreadable',
    ]);
    const text = await refused.text();
    expect(text).toContain('token');
    expect(text).not.toContain('hg_');
  }
  expect(stage.upstream.received()).toEqual([]);
});

it.each(PATHS)('in a field behind a large file arrives nowhere either: %s', async (path) => {
  const refused = await send(path, await multipart({ token: KEY }, 1_500_000));
  expect(refused.headers.get('headgate-reason')).toBe('body_unreadable');
  await refused.body?.cancel();
  await stage.admin.untilIdle();
  await until('the call is over upstream', () => stage.upstream.stats().inFlight === 0);
  expect(stage.upstream.received().filter(({ isWhole }) => isWhole)).toEqual([]);
  expect(receivedText()).not.toContain(KEY.slice(3));
  expect(stage.logs()).not.toContain(KEY.slice(3));
});

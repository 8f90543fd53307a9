// What the page takes for an answer of Headgate, where something before it may answer too.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { api } from '../../../dashboard/src/api.ts';

afterEach(() => vi.unstubAllGlobals());

function answering(answer: () => Response): void {
  vi.stubGlobal('fetch', () => Promise.resolve().then(answer));
}

describe('an answer', () => {
  it('of Headgate comes with its version', async () => {
    answering(() => Response.json({ version: 3 }, { headers: { etag: '"3"' } }));
    expect(await api('GET /groups')).toMatchObject({
      ok: true,
      status: 200,
      body: { version: 3 },
      etag: '"3"',
    });
    const headers = { 'content-type': 'application/yaml' };
    answering(() => new Response('groups: []\n', { headers }));
    expect(await api('GET /config')).toMatchObject({ ok: true, body: 'groups: []\n' });
  });

  it.each(['Application/JSON', 'application/problem+json ; charset=utf-8'])(
    'of the type %s is read as JSON',
    async (type) => {
      answering(() => new Response('{"version":3}', { headers: { 'content-type': type } }));
      expect(await api('GET /groups')).toMatchObject({ ok: true, body: { version: 3 } });
    },
  );

  it.each(['text/html; profile="a/json"', 'text/html; x=application/json', 'text/html; a=yaml'])(
    'of the type %s is a problem',
    async (type) => {
      answering(() => new Response('{"version":3}', { headers: { 'content-type': type } }));
      expect(await api('GET /groups')).toMatchObject({ ok: false });
    },
  );

  it('of a proxy is a problem, whatever its status', async () => {
    const headers = { 'content-type': 'text/html' };
    for (const status of [200, 403, 502]) {
      answering(() => new Response('<title>Sign in</title>', { status, headers }));
      expect(await api('GET /session')).toMatchObject({
        ok: false,
        problem: { status, detail: expect.stringContaining('a proxy in front of Headgate') },
      });
    }
  });

  it.each([
    ['that breaks off', '{"version": 3, "gro'],
    ['that is nothing', ''],
    ['without a body', 'null'],
  ])('%s is a problem', async (_what, text) => {
    const headers = { 'content-type': 'application/json' };
    answering(() => new Response(text, { headers }));
    expect(await api('GET /groups')).toMatchObject({ ok: false });
  });

  it('whose connection breaks is a problem', async () => {
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error('gone')) });
    answering(() => new Response(body, { headers: { 'content-type': 'application/json' } }));
    expect(await api('GET /groups')).toMatchObject({ ok: false, problem: { status: 0 } });
  });
});

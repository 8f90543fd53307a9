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
    expect(await api('listGroups')).toMatchObject({
      ok: true,
      status: 200,
      body: { version: 3 },
      etag: '"3"',
    });
    const headers = { 'content-type': 'application/yaml' };
    answering(() => new Response('groups: []\n', { headers }));
    expect(await api('getConfig')).toMatchObject({ ok: true, body: 'groups: []\n' });
  });

  it('of a proxy is a problem, whatever its status', async () => {
    const headers = { 'content-type': 'text/html' };
    for (const status of [200, 403, 502]) {
      answering(() => new Response('<title>Sign in</title>', { status, headers }));
      expect(await api('getSession')).toMatchObject({
        ok: false,
        problem: { status, detail: expect.stringContaining('something before it answered') },
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
    expect(await api('listGroups')).toMatchObject({ ok: false });
  });

  it('whose connection breaks is a problem', async () => {
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error('gone')) });
    answering(() => new Response(body, { headers: { 'content-type': 'application/json' } }));
    expect(await api('listGroups')).toMatchObject({ ok: false, problem: { status: 0 } });
  });
});

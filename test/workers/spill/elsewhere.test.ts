// To which other upstream a call goes first, and what that gets of it: the same bytes, but for the model
// where that has another name there.
import { afterAll, describe, expect, it } from 'vitest';
import { pack } from '../support/packing.ts';
import { nothingLeaks } from '../support/pool.ts';
import {
  CHAT,
  hold,
  KEY,
  letGo,
  newScene,
  pathTo,
  post,
  servedBy,
  sha256,
  SECRET,
  type Echo,
} from './scene.ts';

afterAll(nothingLeaks);

/** Written as no serialiser would, so that one that came between would show. */
const PROMPT = '"messages" : [ {"role":"user","content":"grüße \\u0026 \\"model\\": 1e3"} ]';
const bodyOf = (model: string) => `{ ${PROMPT},\r\n\t"model" : "${model}" , "n": 1.0 }`;

async function spilled(
  path: string,
  body: string,
  spillTo: 'b' | { upstream: 'b'; model: string },
  setup = {},
): Promise<Echo> {
  const scene = await newScene({ spill: { spill_to: [spillTo] }, ...setup });
  await scene.b.configure({ echo: true });
  await scene.a.failNext('quota');
  const response = await post(pathTo(scene, 'a', path), body, KEY);
  expect(response.status).toBe(200);
  expect((await scene.a.stats()).total).toBe(1);
  return response.json();
}

describe('in the body', () => {
  it('every byte is the same, where the model is called the same', async () => {
    const body = bodyOf('here');
    expect(await spilled(CHAT, body, 'b')).toMatchObject({
      path: CHAT,
      bodyBytes: new TextEncoder().encode(body).length,
      sha256: await sha256(body),
    });
  });

  it.each([
    ['longer', 'a/much-longer.name:it'],
    ['shorter', 'x'],
    ['to be escaped', 'with "quotes" and ümläuts'],
  ])('only the name of the model differs, which is %s there', async (_, model) => {
    const renamed = bodyOf(JSON.stringify(model).slice(1, -1));
    const got = await spilled(CHAT, bodyOf('here'), { upstream: 'b', model });
    expect(got.sha256).toBe(await sha256(renamed));
    expect(got.headers['content-length']).toBe(String(new TextEncoder().encode(renamed).length));
  });

  it.each(['zstd', 'br, gzip'])('a compressed one is sent uncompressed: %s', async (encoding) => {
    const scene = await newScene({ spill: { spill_to: [{ upstream: 'b', model: 'there' }, 'c'] } });
    await scene.c.configure({ echo: true });
    for (const refusing of [scene.a, scene.b]) await refusing.failNext('quota');
    const headers = { ...KEY, 'content-encoding': encoding };
    const response = await post(pathTo(scene, 'a'), pack(bodyOf('here'), encoding), headers);
    const got = await response.json<Echo>();
    expect(got.sha256).toBe(await sha256(bodyOf('here')));
    expect(got.headers['content-encoding']).toBeUndefined();
    expect((await scene.b.stats()).arrivals).toMatchObject([{ model: 'there' }]);
  });

  it.each([
    ['another name there', { upstream: 'c', model: 'elsewhere' } as const, 'elsewhere'],
    ['the name that its caller gave it', 'c' as const, 'here'],
  ])('a call that is sent on to a third has %s', async (_, third, model) => {
    const spill = { spill_to: [{ upstream: 'b', model: 'there' } as const, third] };
    const scene = await newScene({ spill });
    await scene.c.configure({ echo: true });
    for (const refusing of [scene.a, scene.b]) await refusing.failNext('quota');
    const response = await post(pathTo(scene, 'a'), bodyOf('here'), KEY);
    expect((await response.json<Echo>()).sha256).toBe(await sha256(bodyOf(model)));
    expect((await scene.b.stats()).arrivals).toMatchObject([{ model: 'there' }]);
  });

  it('a call whose model cannot be renamed skips that upstream', async () => {
    const scene = await newScene({
      spill: { spill_to: [{ upstream: 'b', model: 'there' }, 'c'], after_ms: 60_000 },
    });
    await scene.c.configure({ echo: true });
    await scene.a.failNext('quota');
    const nameless = `{ ${PROMPT} }`;
    const response = await post(pathTo(scene, 'a'), nameless, KEY);
    expect((await response.json<Echo>()).sha256).toBe(await sha256(nameless));
    expect((await scene.b.stats()).total).toBe(0);
  });
});

describe('in the path', () => {
  const gemini = '/v1beta/models/here:generateContent';
  const azure = '/openai/deployments/here/chat/completions?api-version=2024-10-21';
  it.each([
    ['of Gemini', 'gemini', gemini, 'there', '/v1beta/models/there:generateContent'],
    [
      'of Gemini, with a slash',
      'gemini',
      gemini,
      'v/x y',
      '/v1beta/models/v%2Fx%20y:generateContent',
    ],
    ['of Azure', 'azure', azure, 'there', '/openai/deployments/there/chat/completions'],
    ['of Bedrock', 'bedrock', '/model/here/converse', 'there', '/model/there/converse'],
    ['of LiteLLM', 'openai', '/engines/here/embeddings', 'there', '/engines/there/embeddings'],
  ] as const)('the model has its other name: %s', async (_, dialect, path, model, expected) => {
    const body = bodyOf('here');
    const got = await spilled(path, body, { upstream: 'b', model }, { dialect });
    expect(got.path).toBe(expected);
    expect(got.sha256).toBe(await sha256(body));
    expect(got.query).toBe(path.split('?')[1] ?? '');
  });

  it('a call whose model cannot be renamed there skips that upstream', async () => {
    const scene = await newScene({
      spill: { spill_to: [{ upstream: 'b', model: 'there' }, 'c'], after_ms: 60_000 },
    });
    await scene.a.failNext('quota');
    const path = '/v1/inference/here';
    expect((await post(pathTo(scene, 'a', path), bodyOf('here'), KEY)).status).toBe(200);
    expect((await scene.b.stats()).total).toBe(0);
    expect((await scene.c.stats()).total).toBe(1);
  });

  it('the routes begin where they do at the other upstream', async () => {
    const upstreams = { a: { openai_at: '/v1' }, b: { openai_at: '/compat/v9' } };
    const got = await spilled(CHAT, bodyOf('here'), 'b', { upstreams });
    expect(got.path).toBe('/compat/v9/chat/completions');
  });

  it("and the key is where the other upstream's dialect wants it", async () => {
    const b = { dialect: 'azure', openai_at: '/openai/v1' };
    const upstreams = { a: { openai_at: '/v1' }, b };
    const got = await spilled(CHAT, bodyOf('here'), 'b', { upstreams });
    expect(got.path).toBe('/openai/v1/chat/completions');
    expect(got.headers['api-key']).toBe(SECRET);
    expect(got.headers['authorization']).toBeUndefined();
  });
});

it('the order is as listed', async () => {
  const scene = await newScene({ spill: { spill_to: ['c', 'b'] } });
  const holder = await hold(scene, 'a');
  expect(await servedBy(scene)).toBe('c');
  await letGo(scene, holder);
});

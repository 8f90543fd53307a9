// What was made through `/v1` is asked for at `/v1`: by the official SDKs, at the upstream that made it, and by its maker alone.
import Anthropic from '@anthropic-ai/sdk';
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServe, type Serve } from '../../../scripts/serve/start-serve.ts';
import { ADMIN_TOKEN } from '../support/group-status.ts';
import { startStoringUpstream, type StoringUpstream } from '../support/storing-upstream.ts';

const KEY = `hg_${'7'.repeat(48)}`;
const OTHER_KEY = `hg_${'8'.repeat(48)}`;
const CLOSED_KEY = `hg_${'9'.repeat(48)}`;
const ALLOW = ['responses', 'files', 'batches', 'threads', 'videos', 'runs'];

let one: StoringUpstream;
let two: StoringUpstream;
let claude: StoringUpstream;
let serve: Serve;
let dataDir: string;

beforeAll(async () => {
  one = await startStoringUpstream('one');
  two = await startStoringUpstream('two');
  claude = await startStoringUpstream('claude');
  dataDir = await mkdtemp(join(tmpdir(), 'headgate-made-'));
  await start();
});
afterAll(async () => {
  await serve.kill9();
  for (const upstream of [one, two, claude]) upstream.close();
  await rm(dataDir, { recursive: true, force: true });
});

async function start(): Promise<void> {
  const hash = (key: string): string => `sha256:${createHash('sha256').update(key).digest('hex')}`;
  const auth = { secret: 'UPSTREAM_KEY' };
  serve = await startServe({
    port: 0,
    dataDir,
    adminToken: ADMIN_TOKEN,
    env: { UPSTREAM_KEY: 'sk-operators' },
    config: {
      upstreams: [
        { id: 'one', base_url: one.url, dialect: 'openai', auth },
        { id: 'two', base_url: two.url, dialect: 'openai', auth },
        { id: 'claude', base_url: claude.url, dialect: 'anthropic', auth },
      ],
      keys: [
        { id: 'k', hash: hash(KEY), allow: ALLOW },
        { id: 'other', hash: hash(OTHER_KEY), allow: ALLOW },
        { id: 'closed', hash: hash(CLOSED_KEY) },
      ],
    },
  });
}

const client = (apiKey = KEY): OpenAI =>
  new OpenAI({ baseURL: `${serve.url}/v1`, apiKey, maxRetries: 0 });

const background = { background: true, input: 'x' } as const;

describe('a response', () => {
  it.each(['one', 'two'])('of %s is retrieved, listed, cancelled and deleted there', async (id) => {
    const other = id === 'one' ? two : one;
    const before = other.seen.length;
    const { responses } = client();
    const made = await responses.create({ model: `${id}/gpt-5`, ...background });
    expect(made.id).toContain(id);
    expect((await responses.retrieve(made.id)).status).toBe('in_progress');
    const items = await responses.inputItems.list(made.id);
    expect(items.data).toHaveLength(1);
    expect((await responses.cancel(made.id)).status).toBe('cancelled');
    await responses.delete(made.id);
    await expect(responses.retrieve(made.id)).rejects.toMatchObject({ status: 404 });
    expect(other.seen).toHaveLength(before);
  });

  it('of a stream is resumed after the event that its caller saw last', async () => {
    const { responses } = client();
    const model = 'two/gpt-5';
    let id = '';
    for await (const event of await responses.create({ model, ...background, stream: true })) {
      if (event.type === 'response.created') ({ id } = event.response);
    }
    const types: string[] = [];
    const after = { stream: true, starting_after: 0 } as const;
    for await (const { type } of await responses.retrieve(id, after)) types.push(type);
    expect(types).toEqual(['response.in_progress']);
  });

  it('that was answered in the foreground is found too, and after a restart', async () => {
    const made = await client().responses.create({ model: 'two/gpt-5', input: 'x' });
    await expect.poll(async () => (await client().responses.retrieve(made.id)).id).toBe(made.id);
    await serve.kill9();
    await start();
    expect((await client().responses.retrieve(made.id)).id).toBe(made.id);
  });

  it('that is not stored is not noted', async () => {
    const made = await client().responses.create({ model: 'two/gpt-5', input: 'x', store: false });
    await expect(client().responses.retrieve(made.id)).rejects.toMatchObject({
      status: 404,
      code: 'upstream_unknown',
      message: expect.stringMatching(/headgate-upstream.*\/v1\/responses/),
    });
  });

  it('of another key is not found, and no upstream is asked', async () => {
    const made = await client().responses.create({ model: 'two/gpt-5', ...background });
    const before = one.seen.length + two.seen.length;
    await expect(client(OTHER_KEY).responses.retrieve(made.id)).rejects.toMatchObject({
      status: 404,
      code: 'upstream_unknown',
    });
    expect(one.seen.length + two.seen.length).toBe(before);
    // Who names the upstream is let in there as before.
    const headers = { 'headgate-upstream': 'two' };
    const named = await client(OTHER_KEY).responses.retrieve(made.id, undefined, { headers });
    expect(named.id).toBe(made.id);
  });

  it('is closed to a key that may not read what is stored', async () => {
    const made = await client(CLOSED_KEY).responses.create({ model: 'two/gpt-5', ...background });
    await expect(client(CLOSED_KEY).responses.retrieve(made.id)).rejects.toMatchObject({
      status: 403,
      code: 'key_forbidden',
    });
  });
});

describe('other work', () => {
  it('is polled where it began', async () => {
    const openai = client();
    const headers = { 'headgate-upstream': 'two' };
    const file = await toFile(Buffer.from('{}'), 'a.jsonl');
    const uploaded = await openai.files.create({ file, purpose: 'batch' }, { headers });
    expect((await openai.files.retrieve(uploaded.id)).id).toBe(uploaded.id);
    const batch = await openai.batches.create(
      { input_file_id: uploaded.id, endpoint: '/v1/responses', completion_window: '24h' },
      { headers },
    );
    expect((await openai.batches.retrieve(batch.id)).id).toBe(batch.id);
    expect((await openai.batches.cancel(batch.id)).status).toBe('cancelled');
    const video = await openai.videos.create({ model: 'two/sora-2', prompt: 'x' });
    expect((await openai.videos.retrieve(video.id)).id).toBe(video.id);
    // Its remix names no model.
    await openai.videos.remix(video.id, { prompt: 'y' });
    expect(two.seen.at(-1)).toBe(`POST /videos/${video.id}/remix`);
  });

  it('on a thread is found by the id of the thread', async () => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
    const made = await fetch(`${serve.url}/v1/threads/runs`, {
      method: 'POST',
      headers: { ...headers, 'headgate-upstream': 'two' },
      body: '{"assistant_id":"a"}',
    });
    const run = (await made.json()) as { id: string; thread_id: string };
    const path = `/v1/threads/${run.thread_id}/runs`;
    const polled = await fetch(`${serve.url}${path}/${run.id}`, { headers });
    expect([polled.status, ((await polled.json()) as { id: string }).id]).toEqual([200, run.id]);
  });

  it('of the only upstream of a dialect needs no name of it', async () => {
    const anthropic = new Anthropic({ baseURL: serve.url, apiKey: KEY, maxRetries: 0 });
    const { batches } = anthropic.messages;
    const { id } = await batches.create({ requests: [] });
    expect((await batches.retrieve(id)).id).toBe(id);
    await batches.cancel(id);
    expect(claude.seen.slice(-3)).toEqual([
      'POST /messages/batches',
      `GET /messages/batches/${id}`,
      `POST /messages/batches/${id}/cancel`,
    ]);
  });
});

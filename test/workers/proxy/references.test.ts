// A body may name something that has a model (an assistant, an agent, a preset, a stored prompt) and no model itself. Where the model
// must be true, a header does not stand for one that the upstream looks up.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { nothingLeaks } from '../support/pool.ts';
import { strictScope, type Strict } from '../support/strict.ts';
import { admin, call, configure } from '../support/worker.ts';

const KEY = 'hg_references-0815';

let strict: Strict;
let keys: NonNullable<ConfigInput['keys']>;

beforeAll(async () => {
  strict = await strictScope('references', { echo: true });
  const { json } = await admin('POST', '/fingerprint', { key: KEY });
  keys = [{ id: 'held', hash: json.hash as string, groups: ['cheap'] }];
});

afterAll(nothingLeaks);

async function prepare(references?: 'allow' | 'refuse'): Promise<void> {
  await configure({
    upstreams: [{ id: 'ours', base_url: strict.url, auth: { secret: 'UPSTREAM_TEST_KEY' } }],
    groups: [
      {
        name: 'cheap',
        match: { upstreams: ['ours'], models: ['cheap'], ...(references && { references }) },
        limits: { max_concurrency: 4 },
      },
    ],
    keys,
  });
}

async function ask(path: string, body: unknown, type = 'application/json') {
  const answer = await call(`/ours${path}`, {
    method: 'POST',
    headers: { 'headgate-key': KEY, 'headgate-model': 'cheap', 'content-type': type },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return {
    status: answer.status,
    reason: answer.headers.get('headgate-reason'),
    groups: answer.headers.get('headgate-groups'),
    text: await answer.text(),
  };
}

const REFERENCES: readonly (readonly [path: string, body: object | string, field: string])[] = [
  ['/v1/responses', { prompt: { id: 'pmpt_dear' }, input: 'x' }, 'prompt.id'],
  ['/v1/responses', { previous_response_id: 'resp_dear', input: 'x' }, 'previous_response_id'],
  ['/v1/threads/runs', { assistant_id: 'asst_dear', thread: {} }, 'assistant_id'],
  ['/v1/threads/t1/runs', { assistant_id: 'asst_dear' }, 'assistant_id'],
  ['/v1/conversations', { agent_id: 'ag_dear', inputs: 'x' }, 'agent_id'],
  ['/v1/agents/completions', { agent_id: 'ag_dear', messages: [] }, 'agent_id'],
  ['/v1/chat/completions', { preset: 'dear', messages: [] }, 'preset'],
  ['/v1/chat/completions', { messages: [], Preset: 'dear' }, 'Preset'],
  ['/v1/chat/completions', { messages: [], preſet: 'dear' }, 'preſet'],
  ['/v1/responses', { previousResponseId: 'resp_dear', input: 'x' }, 'previousResponseId'],
  ['/v1/threads/runs', { assistantId: 'asst_dear', thread: {} }, 'assistantId'],
  ['/v1/threads/runs', { 'assistant-id': 'asst_dear', thread: {} }, 'assistant-id'],
  ['/v1/chat/completions', { modelName: 'dear', messages: [] }, 'modelName'],
  [
    '/v1beta/interactions',
    { previousInteractionId: 'i_dear', input: 'x' },
    'previousInteractionId',
  ],
  ['/v1/chat/completions', '{"messages":[],"pr\\u0065set":"dear"}', 'preset'],
  ['/v1/chat/completions', { model: null, preset: 'dear' }, 'preset'],
  ['/v1beta/interactions', { agent: 'research-dear', input: 'x' }, 'agent'],
];

describe('where the model must be true', () => {
  beforeAll(() => prepare());

  it.each(REFERENCES)('%s with %j is refused, and %s is named', async (path, body, field) => {
    const before = (await strict.stats()).total;
    const seen = await ask(path, body);
    expect(seen).toMatchObject({ status: 400, reason: 'body_unreadable' });
    expect(seen.text).toContain(`in ${field},`);
    expect(seen.text).toContain('match.references');
    expect((await strict.stats()).total).toBe(before);
  });

  it.each([
    ['/v1/responses', { model: 'cheap', prompt: { id: 'pmpt_1' }, input: 'x' }],
    ['/v1/threads/runs', { assistant_id: 'asst_1', model: 'cheap', thread: {} }],
    ['/v1/responses', { previous_response_id: 'resp_1', model: 'cheap', input: 'x' }],
    ['/v1/responses', { previous_response_id: null, input: 'x' }],
    ['/v1/completions', { prompt: 'a text' }],
    ['/v1/completions', { prompt: ['a text'] }],
  ])('%s with %j names its model, or refers to none', async (path, body) => {
    expect(await ask(path, body)).toMatchObject({ status: 200, groups: 'cheap' });
  });

  it('a list of models is refused in any spelling', async () => {
    for (const field of ['models', 'modelſ', 'fallbackſ']) {
      const seen = await ask('/v1/chat/completions', { model: 'cheap', [field]: ['dear'] });
      expect(seen).toMatchObject({ status: 400, reason: 'body_unreadable' });
    }
  });

  it('a form refers to an assistant, too', async () => {
    const body =
      '--b\r\ncontent-disposition: form-data; name="assistant_id"\r\n\r\nasst\r\n--b--\r\n';
    const seen = await ask('/v1/audio/transcriptions', body, 'multipart/form-data; boundary=b');
    expect(seen).toMatchObject({ status: 400, reason: 'body_unreadable' });
    expect(seen.text).toContain('assistant_id');
  });
});

describe('where an operator allows references', () => {
  beforeAll(() => prepare('allow'));

  it.each(REFERENCES.filter(([, body]) => !('model' in Object(body))))(
    '%s with %j counts as the model in the header',
    async (path, body) => {
      expect(await ask(path, body)).toMatchObject({ status: 200, groups: 'cheap' });
    },
  );
});

// A body may refer to something with a model (an assistant, an agent, a preset, a stored prompt) without naming the model. Where
// the model must be true, a header does not replace it.
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
  const allow = ['threads', 'videos', 'conversations', 'responses', 'runs'];
  keys = [{ id: 'held', hash: json.hash as string, groups: ['cheap'], allow }];
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
    default_upstream: 'ours',
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

/** Calls of a stored object with its own model: the path names the object, and the body names no model. */
const BY_PATH: readonly (readonly [path: string, named: string])[] = [
  ['/v1/threads/t1/runs/r1/submit_tool_outputs', 'threads/t1'],
  ['/v1/threads/t1/runs/r1/submit%5ftool_outputs', 'threads/t1'],
  ['/v1/threads/t1/runs', 'threads/t1'],
  ['/v1//videos/dear/remix', 'videos/dear'],
  ['/v1/videos/dear/remix/', 'videos/dear'],
  ['/v1/videos/edits', 'videos/edits'],
  ['/v1/conversations/dear', 'conversations/dear'],
  ['/v1/conversations/dear/restart', 'conversations/dear'],
  ['/v1/prompts/dear/completions', 'prompts/dear'],
  ['/v1/Agents/dear/chat/completions', 'Agents/dear'],
  ['/v1/assistants/dear/responses', 'assistants/dear'],
  ['/v1/fine_tunes/dear/completions', 'fine_tunes/dear'],
  ['/v2/inference/deployments/dear/chat/completions', 'deployments/dear'],
  ['/api/v1/apps/dear/completion', 'apps/dear'],
  ['/agents/dear/agentAliases/a/sessions/s/text', 'agents/dear'],
  ['/flows/dear/aliases/a', 'flows/dear'],
  ['/v1/projects/p/locations/l/reasoningEngines/dear:query', 'reasoningEngines/dear'],
];

describe('where the model must be true', () => {
  beforeAll(() => prepare());

  it.each(BY_PATH)('%s without a model is refused, and %s is named', async (path, named) => {
    const before = (await strict.stats()).total;
    for (const body of [{}, { model: null }, { input: 'x' }]) {
      const seen = await ask(path, body);
      expect(seen).toMatchObject({ status: 400, reason: 'body_unreadable' });
      expect(seen.text).toContain(`in \`${named}\`.`);
      expect(seen.text).toContain('match.references');
    }
    expect((await strict.stats()).total).toBe(before);
  });

  it.each(BY_PATH)('%s with a model in its body counts as that', async (path) => {
    expect(await ask(path, { model: 'cheap' })).toMatchObject({ status: 200, groups: 'cheap' });
  });

  it('a path on the unified routes is refused, too', async () => {
    for (const headers of [{}, { 'headgate-model': 'cheap' }]) {
      const answer = await call('/v1/threads/t1/runs/r1/submit_tool_outputs', {
        method: 'POST',
        headers: { 'headgate-key': KEY, 'content-type': 'application/json', ...headers },
        body: '{"tool_outputs":[]}',
      });
      expect(answer.status).toBe(400);
      expect(await answer.text()).toContain('threads/t1');
    }
  });

  it.each([
    ['GET', '/v1/threads/t1/runs/r1'],
    ['GET', '/v1/videos/v1/content'],
    ['GET', '/v1/conversations/c1'],
    ['GET', '/v1/responses/r1'],
    ['DELETE', '/v1/videos/v1'],
    ['POST', '/v1/responses/r1/cancel'],
    ['POST', '/v1/threads/t1/messages'],
  ])('%s %s runs no model, and goes on', async (method, path) => {
    const answer = await call(`/ours${path}`, { method, headers: { 'headgate-key': KEY } });
    await answer.text();
    expect(answer.status).toBe(200);
  });

  it.each(REFERENCES)('%s with %j is refused, and %s is named', async (path, body, field) => {
    const before = (await strict.stats()).total;
    const seen = await ask(path, body);
    expect(seen).toMatchObject({ status: 400, reason: 'body_unreadable' });
    expect(seen.text).toContain(`in \`${field}\`.`);
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

  it('a form may refer to an assistant too', async () => {
    const body =
      '--b\r\ncontent-disposition: form-data; name="assistant_id"\r\n\r\nasst\r\n--b--\r\n';
    const seen = await ask('/v1/audio/transcriptions', body, 'multipart/form-data; boundary=b');
    expect(seen).toMatchObject({ status: 400, reason: 'body_unreadable' });
    expect(seen.text).toContain('assistant_id');
  });
});

describe('where an operator allows references', () => {
  beforeAll(() => prepare('allow'));

  it.each(BY_PATH)('%s counts as the model in the header', async (path) => {
    expect(await ask(path, {})).toMatchObject({ status: 200, groups: 'cheap' });
  });

  it.each(REFERENCES.filter(([, body]) => !('model' in Object(body))))(
    '%s with %j counts as the model in the header',
    async (path, body) => {
      expect(await ask(path, body)).toMatchObject({ status: 200, groups: 'cheap' });
    },
  );
});

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { createAdmin } from '../support/lifecycle-admin.ts';
import { practiceConfig } from '../support/lifecycle-stage.ts';
import { startTracedWorker, type TracedWorker } from '../support/traced-worker.ts';

const TOKEN = 'traces-admin-token';

let folder: string;
let upstream: StrictUpstream;
let worker: TracedWorker;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-traces-'));
  upstream = await startStrictUpstream({});
  worker = await startTracedWorker(folder, TOKEN);
  const limits = { max_concurrency: 3, tpm: 1_000_000 };
  const config = practiceConfig(3, { limits })(upstream);
  const admin = createAdmin(() => worker.url, TOKEN);
  const answer = await admin.request('PUT', '/config', config);
  if (!answer.ok) throw new Error(await answer.text());
});

afterAll(async () => {
  worker.stop();
  await upstream.close();
  await rm(folder, { recursive: true, force: true });
});

async function chat(headers: Readonly<Record<string, string>> = {}): Promise<number> {
  const response = await fetch(`${worker.url}/practice/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-traced', ...headers },
    body: JSON.stringify({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: 'secret?' }],
    }),
  });
  await response.text();
  return response.status;
}

it('a trace says by the names of the GenAI conventions what a call was and what it used', async () => {
  expect(await chat()).toBe(200);
  await vi.waitFor(
    () => {
      expect(Object.fromEntries(worker.attributes())).toMatchObject({
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'practice',
        'gen_ai.request.model': 'gpt-4o-mini',
        'gen_ai.usage.input_tokens': expect.any(Number),
        'gen_ai.usage.output_tokens': expect.any(Number),
        'headgate.groups': 'practice',
        'headgate.wait_ms': expect.any(Number),
        'headgate.tries': 1,
      });
    },
    { timeout: 120_000 },
  );
  expect(JSON.stringify([...worker.attributes()])).not.toMatch(/secret|sk-traced/);
  expect(worker.attributes().has('error.type')).toBe(false);
});

it('the trace of a call that was refused says why', async () => {
  expect(await chat({ 'headgate-max-wait': 'soon' })).toBe(400);
  await vi.waitFor(() => expect(worker.attributes().get('error.type')).toBe('header_invalid'), {
    timeout: 120_000,
  });
});

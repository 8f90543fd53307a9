import { request, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openChat } from '../support/lifecycle-call.ts';
import type { Stage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS, practiceConfig, startStage } from '../support/lifecycle-stage.ts';

/** Callers that stay connected and read nothing, over real sockets: what is between takes some megabytes first. */
let stage: Stage;

beforeAll(async () => {
  stage = await startStage({
    config: practiceConfig(1, { holds: { ...NO_HOLDS, stalled_ms: 1_000 } }),
    upstream: { chunks: 1 },
  });
});

afterAll(() => stage.close());

/** Sends a call whose answer is longer than what any buffer holds, and reads nothing of it. */
function callAndStall(headers: Readonly<Record<string, string>>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${stage.url()}/practice/v1/chat/completions`, {
      method: 'POST',
      agent: false,
      headers: { 'x-label': 'stalled', 'content-type': 'application/json', ...headers },
    });
    outgoing.on('error', reject);
    outgoing.on('response', (answer) => {
      answer.on('error', () => undefined);
      resolve(answer);
    });
    outgoing.end(JSON.stringify({ model: 'practice', stream: true, messages: [] }));
  });
}

it('a caller that stops reading is cut after stalled_ms, and the next one gets its slot', async () => {
  const stalled = await callAndStall({ 'x-strict-bytes': '100000000' });
  const next = openChat(stage.url(), { label: 'next' });
  expect(await next.answered).toBe(200);
  expect(await next.ended).toBe('complete');
  await stage.admin.untilIdle();
  const { arrivals, peak, rejected429 } = stage.upstream.stats();
  expect(arrivals.map(({ label, state }) => [label, state])).toEqual([
    ['stalled', 'aborted'],
    ['next', 'done'],
  ]);
  expect({ peak, rejected429 }).toEqual({ peak: 1, rejected429: 0 });
  stalled.destroy();
});

import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';

/** workerd closes what is idle for so long (1.20261117.1). Clients send around that moment, and after it. */
const IDLE_MS = 15_000;
const CLIENTS = 60;
const SPREAD_MS = 200;
const LATER_MS = IDLE_MS + 1_500;
const TEST_MS = 120_000;

let stage: LifecycleStage;

beforeAll(async () => {
  stage = await startStage({ config: practiceConfig(2 * CLIENTS), upstream: { chunks: 1 } });
});

afterAll(() => stage.close());

const BODY = JSON.stringify({ model: 'practice', messages: [{ role: 'user', content: 'Hi' }] });

interface IdleClientsAnswered {
  readonly status: number | undefined;
  /** True: over the connection of the call before. */
  readonly isReused: boolean;
}

function call(agent: Agent): Promise<IdleClientsAnswered> {
  return new Promise((resolve, reject) => {
    const sent = request(`${stage.url()}/practice/v1/chat/completions`, {
      agent,
      method: 'POST',
      headers: {
        authorization: 'Bearer sk-idle',
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(BODY),
      },
    });
    sent.on('error', reject);
    sent.on('response', (answer) => {
      answer.resume();
      answer.on('error', reject);
      answer.on('end', () => resolve({ status: answer.statusCode, isReused: sent.reusedSocket }));
    });
    sent.end(BODY);
  });
}

/** One client with one connection, which it keeps, calls again and again after so long. */
async function callAgain(pauses: readonly number[]): Promise<IdleClientsAnswered[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const answered = [await call(agent)];
  for (const pauseMs of pauses) {
    await delay(pauseMs);
    answered.push(await call(agent));
  }
  agent.destroy();
  return answered;
}

it(
  'calls of a client that was idle for about as long as workerd waits are all answered, over its connection',
  async () => {
    const all = await Promise.all(
      Array.from({ length: CLIENTS }, (_, at) => {
        const aroundMs = IDLE_MS - SPREAD_MS / 2 + (at * SPREAD_MS) / CLIENTS;
        return callAgain([aroundMs, LATER_MS]);
      }),
    );
    const again = { status: 200, isReused: true };
    for (const answered of all) {
      expect(answered).toEqual([{ status: 200, isReused: false }, again, again]);
    }
    // None was lost on the way, and none was sent twice.
    expect(stage.upstream.stats().total).toBe(all.flat().length);
  },
  TEST_MS,
);

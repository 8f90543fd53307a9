import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { directoryOf } from '../../../src/env.ts';
import { SERVED } from '../../../src/core/words/signal.ts';
import type { GroupRpc } from '../../../src/contract/rpc/group-rpc.ts';
import { passAwake, pool, queueUp, refusedThenServed, request, take } from '../support/pool.ts';
import { configure, env } from '../support/worker.ts';

type SceneGroupInput = NonNullable<ConfigInput['groups']>[number];

/** Calls that make every counter count. */
async function haveCalls(group: GroupRpc): Promise<void> {
  const price = { input: 0.001, output: 0.001 };
  const estimate = { inputTokens: 10, maxOutputTokens: 10, reserve: 'max_tokens', price } as const;
  const first = await group.acquire(request('watched', 'a', { estimate }));
  if (first.kind !== 'granted') throw new Error(first.kind);
  await group.acquire(request('watched', 'busy', { wait: false }));
  await first.lease.report({ ...SERVED, kind: 'quota' }, false);
  const seen = { inputTokens: 7, outputTokens: 3 };
  const cut = { cut: 'idle' } as const;
  const used = { requests: 1, ...seen, usd: 0.25, seen };
  await first.lease.release('success', 200, used, false, cut);
  const second = await group.acquire(request('watched', 'a', { attempt: 2 }));
  if (second.kind !== 'granted') throw new Error(second.kind);
  await passAwake('watched', 60_000); // nobody renews it
  second.lease[Symbol.dispose]();
}

/** Has the upstream refuse a model of a group that other models go on in. */
async function refuseModel(group: string, model: string): Promise<void> {
  const { lease: other } = await take(group, 'served', { model: 'other' });
  await other.release('success', 200);
  const { lease } = await take(group, 'refused', { model });
  const refusal = { kind: 'requests', scope: 'model', retryAfterMs: 3_000_000 } as const;
  await lease.report({ ...SERVED, ...refusal }, false);
  await lease.release('refused', 429);
}

/** Counts a call that was refused at the door. */
async function haveRefusal(): Promise<void> {
  const at = new Date().toISOString();
  const facts = { key: 'paid', key_kind: 'gateway', team: null, group: null, model: 'm' } as const;
  const sum = { count: 3, first_at: at, last_at: at, message: 'No.', request_ids: [] };
  await directoryOf(env).noteRefusals([
    { reason: 'key_forbidden', upstream: 'openai', ...facts, ...sum },
  ]);
}

/** Makes calls until every metric has a sample. */
export async function haveEveryMetric(others: readonly SceneGroupInput[] = []): Promise<void> {
  await configure({
    groups: [
      ...others,
      {
        name: 'watched',
        limits: {
          max_concurrency: 1,
          rpm: 100,
          rpd: 100_000,
          tpd: 1_000_000,
          budget_usd: { per_day: 100 },
        },
        holds: { release_cooldown_ms: 0, failure_hold_ms: 0 },
      },
      {
        name: 'keys',
        members: [
          { name: 'a', upstream: 'openai', limits: { max_concurrency: 3, rpm: 60 } },
          { name: 'b', upstream: 'groq', limits: { max_concurrency: 1 }, tier: 2 },
        ],
        holds: { release_cooldown_ms: 0, failure_hold_ms: 0 },
      },
      { name: 'scoped', limits: { max_concurrency: 2 }, queue: { timeout_ms: 3_600_000 } },
      { name: 'split', partition_by: ['caller'], limits: { max_concurrency: 2 } },
    ],
    keys: [
      {
        id: 'paid',
        hash: `sha256:${'a'.repeat(64)}`,
        limits: { budget_usd: { per_month: 7 } },
      },
    ],
  });
  await haveCalls(pool('watched'));
  await haveRefusal();
  await directoryOf(env).list({ group: 'key:paid', partition: null });
  const { lease } = await take('keys', 'paid');
  const seen = { inputTokens: 7, outputTokens: 3 };
  await lease.release('success', 200, { requests: 1, ...seen, usd: 0.5, seen });
  await refusedThenServed('keys', 'refused', 'unauthorized');
  // It is queued as long as the tests look.
  await refuseModel('scoped', 'full');
  await queueUp('scoped', 'held-by-scope', { model: 'full', sliceMs: 3_600_000 });
  // It is held as long as the tests look.
  await take('key:paid', 'held', { isById: true, kind: 'lease' });
}

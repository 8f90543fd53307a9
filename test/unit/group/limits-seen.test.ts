import { describe, expect, it } from 'vitest';
import { LimitsSeen } from '../../../src/group/observe/limit-status.ts';
import { instant } from '../../../src/core/words/ids.ts';
import type { LimitHint } from '../../../src/core/words/signal.ts';

const MINUTE_MS = 60_000;
const NOW = instant(1_000_000_000_000);
const CALL = { upstream: 'openai', model: 'gpt-4o' };

function rpm(limit: number): LimitHint[] {
  return [{ dimension: 'requests', windowMs: MINUTE_MS, limit, remaining: 0, resetMs: null }];
}

/** A store that counts what is written. */
function storeOf() {
  const rows: string[] = [];
  const store = {
    recall: () => rows.at(-1) ?? null,
    remember: (_key: string, value: string) => void rows.push(value),
  };
  return { rows, store };
}

describe('limits that were seen', () => {
  it('are none before, and are told by model with when they were first so', () => {
    const seen = new LimitsSeen(storeOf().store);
    expect(seen.status()).toEqual({});
    seen.note(CALL, [], NOW);
    expect(seen.status()).toEqual({});
    seen.note(CALL, rpm(500), NOW);
    seen.note(CALL, rpm(500), instant(NOW + MINUTE_MS));
    seen.note({ ...CALL, model: null }, rpm(9), NOW);
    const at = new Date(NOW).toISOString();
    expect(seen.status().limits_seen).toEqual([
      { ...CALL, limits: { rpm: 500 }, at },
      { ...CALL, model: null, limits: { rpm: 9 }, at },
    ]);
  });

  it('are written when they are news, and not with every call of callers whose limits differ', () => {
    const { rows, store } = storeOf();
    const seen = new LimitsSeen(store);
    for (let call = 0; call < 100; call += 1) seen.note(CALL, rpm(500), NOW);
    expect(rows).toHaveLength(1);
    for (let call = 0; call < 100; call += 1) seen.note(CALL, rpm(call), NOW);
    expect(rows).toHaveLength(1);
    seen.note(CALL, rpm(99), instant(NOW + 10 * MINUTE_MS));
    expect(rows).toHaveLength(2);
    const next = new LimitsSeen(store);
    expect(next.status()).toEqual(seen.status());
    expect(next.status().limits_seen).toMatchObject([{ limits: { rpm: 99 } }]);
  });

  it('are kept of so many models, whatever they are called', () => {
    const seen = new LimitsSeen(storeOf().store);
    for (let at = 0; at < 40; at += 1) {
      seen.note({ upstream: 'u', model: `${at}${'x'.repeat(9_000)}` }, rpm(1), NOW);
    }
    const all = seen.status().limits_seen ?? [];
    expect(all).toHaveLength(16);
    expect(all.at(-1)?.model).toMatch(/^39x{198}$/);
  });
});

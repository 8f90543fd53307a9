// The calls of a pool by the upstream that they went to: counts of the day, the last refusals, and what is forgotten.
import { expect, it } from 'vitest';
import {
  noteGrantedThere,
  noteRefusedThere,
  noteSpentThere,
  noteUnusedThere,
  UPSTREAMS_MAX,
  type UpstreamCalls,
} from '../../../src/core/parts/totals.ts';
import { spentIn } from '../../../src/core/parts/spend.ts';
import { instant, type InstantMs } from '../../../src/core/words/ids.ts';

const DAY_MS = 86_400_000;
const NOON = Date.parse('2026-03-14T12:00:00Z');
const at = (ms = 0): InstantMs => instant(NOON + ms);

const SAID = { retryAfterMs: 500, model: 'm' };

it('counts by upstream, each by itself', () => {
  const calls: UpstreamCalls = new Map();
  noteGrantedThere(calls, 'groq', 2, at());
  noteGrantedThere(calls, 'openai', 1, at(1));
  noteRefusedThere(calls, 'groq', 'requests', SAID, at(2));
  noteSpentThere(calls, 'groq', 0.5, at(3));
  expect(calls.get('openai')).toMatchObject({ granted: 1, refused: {}, lastAt: at(1) });
  expect(calls.get('groq')).toMatchObject({
    granted: 2,
    refused: { requests: 1 },
    lastRefusals: { requests: { at: at(2), ...SAID } },
  });
  expect(spentIn(calls.get('groq')?.spent ?? never(), 'day', at(4))).toBe(0.5);
});

it('begins its counts anew with the day, and keeps the last refusals', () => {
  const calls: UpstreamCalls = new Map();
  noteRefusedThere(calls, 'groq', 'requests', SAID, at());
  noteGrantedThere(calls, 'groq', 1, at(DAY_MS));
  expect(calls.get('groq')).toMatchObject({
    granted: 1,
    refused: {},
    lastRefusals: { requests: { at: at() } },
  });
});

it('forgets an upstream whose only call was never sent, and no other', () => {
  const calls: UpstreamCalls = new Map();
  for (const id of ['never', 'twice', 'refused', 'twice']) noteGrantedThere(calls, id, 1, at());
  noteRefusedThere(calls, 'refused', 'error', SAID, at());
  for (const id of ['never', 'twice', 'refused', 'unknown']) noteUnusedThere(calls, id, at());
  expect([...calls].map(([id, { granted }]) => [id, granted])).toEqual([
    ['twice', 1],
    ['refused', 0],
  ]);
});

it('remembers a bounded number, and forgets the one not called for longest', () => {
  const calls: UpstreamCalls = new Map();
  for (let n = 0; n < UPSTREAMS_MAX; n += 1) noteGrantedThere(calls, `u${n}`, 1, at(n));
  noteGrantedThere(calls, 'u0', 1, at(100));
  noteGrantedThere(calls, 'new', 1, at(101));
  expect(calls.size).toBe(UPSTREAMS_MAX);
  expect(calls.has('u1')).toBe(false);
  expect(calls.has('u0')).toBe(true);
});

function never(): never {
  throw new Error('not there');
}

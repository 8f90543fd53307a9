/** Stopping a self-hosted Headgate with calls in flight loses nothing of what was before: no minute, and no line of the log. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { practiceConfig, startStage } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

let stage: LifecycleStage;

beforeEach(async () => {
  stage = await startStage({ config: practiceConfig(20, { log: { sample: 1 } }) });
});

afterEach(() => stage.close());

async function read<T>(path: string): Promise<T> {
  const response = await stage.admin.request('GET', path);
  expect([path, response.status]).toEqual([path, 200]);
  return (await response.json()) as T;
}

/** Has calls end while another one goes on, so that the pool writes nothing of them by itself. */
async function callsBesideOne(): Promise<string> {
  const { upstream } = stage;
  upstream.configure({ silentAfterChunks: 1 });
  openChat(stage.url(), { label: 'goes on' });
  await until('one call runs', () => upstream.stats().inFlight === 1);
  upstream.configure({ silentAfterChunks: null });
  const ended = Array.from({ length: 5 }, (_, index) =>
    openChat(stage.url(), { label: `ends-${index}` }),
  );
  await Promise.all(ended.map((call) => call.ended));
  await stage.admin.untilGroup('practice', { in_use: 1 });
  return String(ended[0]?.headers()['headgate-lease']);
}

interface WrittenAtTheEndFound {
  readonly calls: readonly { readonly kept_for: string; readonly outcome: string }[];
}
interface WrittenAtTheEndPast {
  readonly gaps: readonly { readonly why: string }[];
  readonly points: readonly { readonly granted: number }[];
}

it('SIGTERM writes the open minute and the log', async () => {
  const lease = await callsBesideOne();
  await stage.stop(200);
  await stage.start();
  const { calls } = await read<WrittenAtTheEndFound>(`/calls?q=${encodeURIComponent(lease)}`);
  expect(calls).toMatchObject([{ kept_for: 'sample', outcome: 'success' }]);
  const { gaps, points } = await read<WrittenAtTheEndPast>('/groups/practice/history');
  expect(gaps.map(({ why }) => why)).toEqual(['before']);
  expect(points.reduce((sum, point) => sum + point.granted, 0)).toBe(6);
});

it('kill -9 leaves a gap in place of them', async () => {
  const lease = await callsBesideOne();
  await stage.kill9();
  await stage.start();
  const { calls } = await read<WrittenAtTheEndFound>(`/calls?q=${encodeURIComponent(lease)}`);
  expect(calls).toEqual([]);
  const { gaps } = await read<WrittenAtTheEndPast>('/groups/practice/history');
  expect(gaps.map(({ why }) => why)).toEqual(['before', 'lost']);
});

it('nobody else can have it written', async () => {
  expect((await fetch(`${stage.url()}/!stopping`)).status).toBe(404);
});

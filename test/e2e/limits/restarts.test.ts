import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openChat } from '../support/lifecycle-call.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { startScopes } from '../support/limits-stage.ts';
import { until } from '../support/lifecycle-wait.ts';

const RPM = 20;

/** Time in which a group that had forgotten its last minute would let all of these through. */
const SECOND_HELPING_MS = 1_500;

let stage: LifecycleStage;

afterEach(() => stage.close());

const send = (count: number, label: string): LifecycleOpenCall[] =>
  Array.from({ length: count }, (_, i) =>
    openChat(stage.url(), { path: '/limited/v1/chat/completions', label: `${label}-${i}` }),
  );

it('a minute that is used up stays so over kill -9 and a restart', async () => {
  // All of a minute may go at once, so that it is used up soon.
  const limits = { max_concurrency: 100, rpm: RPM, burst: 1 };
  stage = await startScopes([{ id: 'limited', group: { limits } }], {
    rates: { '*': { rpm: RPM } },
  });
  const { upstream, admin } = stage;
  for (let helping = 0; helping < 2; helping += 1) {
    // Half of them are still at the upstream when the process dies.
    upstream.configure({ silentAfterChunks: helping === 0 ? 1 : null }, 'limited');
    const calls = send(RPM + 5, `helping-${helping}`);
    await until('the minute is used up', () => upstream.stats('limited').total === RPM);
    await admin.untilGroup('limited', { queued: helping === 0 ? 5 : RPM + 5 });
    await delay(helping === 0 ? 0 : SECOND_HELPING_MS);
    expect(upstream.stats('limited')).toMatchObject({ total: RPM, refused: {} });
    await stage.kill9();
    await Promise.all(calls.map(({ ended }) => ended));
    await stage.start();
  }
});

// Limits of a day, over the wire: who does not fit is refused at once or waits in vain, a reset of the
// object gives no second helping, and a day later there is room again.
import { afterAll, describe, expect, it } from 'vitest';
import { nothingLeaks, resetPool } from '../support/pool.ts';
import type { WorkerOpenCall } from '../support/worker.ts';
import {
  later,
  newStage,
  send,
  served,
  statusOf,
  reportedBy,
  untilGroup,
  type LimitsStage,
} from './stage.ts';

afterAll(nothingLeaks);

const DAY_MS = 86_400_000;
/** A window of a day is kept in bins: what was taken is free again that much later, at the most. */
const BIN_MS = 1_800_000;

const AT_ONCE = { 'headgate-max-wait': '0' };

/** A call is refused for `reason`, and told to come back: as late as any is told, since a day is long. */
async function expectRefused(one: WorkerOpenCall, reason: string): Promise<void> {
  expect(await reportedBy(one)).toEqual({ status: 429, tries: '0', reason, shouldRetry: null });
  const { headers } = await one.response;
  const retryAfterMs = Number(headers.get('retry-after-ms'));
  expect(retryAfterMs).toBeGreaterThanOrEqual(30_000);
  expect(retryAfterMs).toBeLessThanOrEqual(60_000);
  expect(Number(headers.get('retry-after'))).toBe(Math.ceil(retryAfterMs / 1_000));
}

async function expectRoomNextDay(stage: LimitsStage, limit: string, left: number): Promise<void> {
  await later(stage, DAY_MS + BIN_MS);
  expect((await statusOf(stage)).rates).toMatchObject({ [limit]: { left } });
  expect(await reportedBy(send(stage, 'next day'))).toEqual(served(1));
}

describe('a limit of a day', () => {
  it('of three requests refuses the fourth, also after a reset, until the next day', async () => {
    const stage = await newStage({ group: { limits: { rpd: 3 } } });
    for (let at = 0; at < 3; at += 1) {
      expect(await reportedBy(send(stage, `call-${at}`))).toEqual(served(1));
    }
    for (let instance = 0; instance < 2; instance += 1) {
      await untilGroup(stage, { in_use: 0, rates: { rpd: { limit: 3, left: 0 } } });
      await expectRefused(send(stage, 'fourth', { headers: AT_ONCE }), 'busy');
      // When there will be a request to spare is known, and it is after the deadline.
      await expectRefused(send(stage, 'fourth'), 'infeasible');
      await resetPool(stage.group);
    }
    expect((await stage.strict.stats()).total).toBe(3);
    await expectRoomNextDay(stage, 'rpd', 3);
  });

  it('of tokens has the next call wait until its deadline, also after a reset, until the next day', async () => {
    const settings = { inputTokens: 900, outputTokens: 100 };
    const stage = await newStage({ settings, group: { limits: { tpd: 1_000 } } });
    expect(await reportedBy(send(stage, 'all of it'))).toEqual(served(1));
    for (let instance = 0; instance < 2; instance += 1) {
      await untilGroup(stage, { in_use: 0, rates: { tpd: { limit: 1_000, left: 0 } } });
      await expectRefused(send(stage, 'next', { headers: AT_ONCE }), 'busy');
      await expectRefused(
        send(stage, 'next', { headers: { 'headgate-max-wait': '500ms' } }),
        'queue_timeout',
      );
      await resetPool(stage.group);
    }
    expect((await stage.strict.stats()).total).toBe(1);
    await expectRoomNextDay(stage, 'tpd', 1_000);
  });
});

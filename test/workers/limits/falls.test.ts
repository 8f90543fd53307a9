// An upstream that takes fewer calls at once than before, while long calls are in flight: each slot that
// comes free may cost a refusal, and no caller is to hear of one.
import { afterAll, expect, it } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { finish, newStage, send, streaming, reportedBy, untilGroup } from './stage.ts';

afterAll(nothingLeaks);

const BEFORE = 8;
const AFTER = 2;

it('a fall from 8 to 2 beneath long calls costs refusals that no caller hears of', async () => {
  const stage = await newStage({ settings: { limit: BEFORE } });
  const long = await Promise.all(
    Array.from({ length: BEFORE }, (_, at) => streaming(stage, `long-${at}`)),
  );
  const next = [send(stage, 'next-0')];
  await untilGroup(stage, { in_use: BEFORE, queued: 1 });
  await stage.strict.configure({ limit: AFTER });
  for (const [at, one] of long.slice(0, BEFORE - AFTER).entries()) {
    one.leave();
    expect(await one.end).toBe('cut');
    const left = BEFORE - 1 - at;
    const queued = next.length;
    await untilGroup(stage, { in_use: left, queued, refusals_total: { concurrency: at + 1 } });
    // The oldest waits for long; others come as calls end.
    next.push(send(stage, `next-${next.length}`));
    await untilGroup(stage, { queued: queued + 1 });
  }
  await finish(stage, ...long.slice(BEFORE - AFTER));
  for (const one of next) {
    expect(await reportedBy(one)).toMatchObject({ status: 200, reason: null });
  }
});

// `headgate status` where an upstream stops some calls only: which, until when, why, and how many are queued.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ROOT } from '../../../scripts/serve/build.ts';
import { runToEnd } from '../support/command-line.ts';
import { openChat, type ChatOptions, type LifecycleOpenCall } from '../support/lifecycle-call.ts';
import {
  practiceConfig,
  startStage,
  STAGE_TOKEN,
  type LifecycleStage,
} from '../support/lifecycle-stage.ts';

let stage: LifecycleStage;
const open: LifecycleOpenCall[] = [];

beforeAll(async () => {
  stage = await startStage({
    config: practiceConfig(9, { queue: { timeout_ms: 900_000 } }),
    // The upstream takes one call at a time with the key of a small plan.
    upstream: { limitsByKey: { 'sk-small': 1 } },
  });
});

afterAll(async () => {
  for (const call of open) call.leave('FIN');
  await stage.close();
});

function send(model: string, rest: Partial<ChatOptions> = {}): LifecycleOpenCall {
  const call = openChat(stage.url(), { label: `${model}-${open.length}`, model, ...rest });
  open.push(call);
  return call;
}

async function status(...args: string[]) {
  const { code, out, err } = await runToEnd(
    [process.execPath, 'scripts/headgate.ts', 'status', ...args],
    {
      cwd: ROOT,
      env: {
        PATH: process.env['PATH'],
        HEADGATE_URL: stage.url(),
        HEADGATE_TOKEN: STAGE_TOKEN,
      },
    },
  );
  expect(code).toBe(0);
  return { out, notes: err.split('\n') };
}

const FULL = { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': '600000' };

it('names the only model that a group has called, while it is paused', async () => {
  const refused = send('Full', { headers: { ...FULL, 'headgate-max-wait': '0' } });
  expect(await refused.answered).toBe(429);
  const { out, notes } = await status();
  expect(out).toMatch(/^practice +partly paused /m);
  expect(notes).toContainEqual(
    expect.stringMatching(/^! practice: only model full.*: paused until \S+Z: Rate limit/),
  );
});

it('lists each model and key that is stopped or limited, of one group and of all', async () => {
  expect(await send('free').answered).toBe(200);
  const waiting = send('full', { headers: { 'headgate-max-wait': '890s' } });
  const small = { key: 'sk-small', headers: { 'x-strict-silent-after-chunks': '1' } };
  expect(await send('free', small).answered).toBe(200);
  const second = send('free', small);
  await stage.admin.untilGroup('practice', { queued: 2 });
  for (const { out, notes } of [await status(), await status('practice')]) {
    expect(out).toMatch(/^practice +partly paused +1 /m);
    const stops = notes.filter((line) => line.startsWith('! practice: only'));
    expect(stops).toHaveLength(2);
    expect(stops).toContainEqual(
      expect.stringMatching(
        /^! practice: only model full, key fp_\w+: paused until \S+Z, 1 queued: Rate limit/,
      ),
    );
    expect(stops).toContainEqual(
      expect.stringMatching(/^! practice: only key fp_\w+: limited to 1 slot, 1 queued$/),
    );
    expect(JSON.stringify([out, notes])).not.toContain('sk-small');
  }
  const { out } = await status('practice', '--json');
  const { groups } = JSON.parse(out) as { groups: { scopes: { queued: number }[] }[] };
  expect(groups[0]?.scopes.map(({ queued }) => queued)).toEqual([1, 1]);
  for (const call of [waiting, second]) call.leave('RST');
});

// `npm run serve` as people start it: a process, a folder, a file, signals.
import { describe, expect, it } from 'vitest';
import { createAdmin } from '../support/lifecycle-admin.ts';
import type { LifecycleOpenCall } from '../support/lifecycle-call.ts';
import { openCall, openChat } from '../support/lifecycle-call.ts';
import { STAGE_TOKEN } from '../support/lifecycle-stage.ts';
import { clock, FIGURE, until } from '../support/lifecycle-wait.ts';
import {
  configFile,
  jsonFile,
  limitOf,
  serve,
  startServed,
  upstream,
  useServeCommand,
} from '../support/serve-command.ts';

useServeCommand();

describe('the configuration of the first start', () => {
  it('is imported from JSON, and not again at the second start', async () => {
    const first = await startServed('--config', await jsonFile(3));
    await first.script.untilPrinted(/Imported the configuration from/);
    expect(await limitOf(first.url)).toBe(3);
    first.script.kill('SIGTERM');
    expect(await first.script.exited).toBe(0);

    const second = await startServed('--config', await jsonFile(7));
    await second.script.untilPrinted(/was not imported because a configuration exists/);
    expect(await limitOf(second.url)).toBe(3);
  });

  it('that is refused ends the start with 1 and the path of the field', async () => {
    const wrong = { groups: [{ name: 'practice', limits: { max_concurency: 3 } }] };
    const script = serve(['--config', await configFile('wrong.json', JSON.stringify(wrong))], {});
    expect(await script.exited).toBe(1);
    expect(script.output()).toContain('groups[0].limits.max_concurency');
    expect(script.output()).toContain('The configuration was rejected');
    // Nothing was kept of it: the corrected one counts as the first.
    const corrected = await startServed('--config', await jsonFile(4));
    await corrected.script.untilPrinted(/Imported the configuration from/);
    expect(await limitOf(corrected.url)).toBe(4);
  });
});

describe('a signal', () => {
  const send = (url: string, count: number): LifecycleOpenCall[] =>
    Array.from({ length: count }, (_, i) => openChat(url, { label: `call-${i}` }));

  it('SIGTERM lets streams and queued calls end, refuses new connections, and exits with 0', async () => {
    upstream.configure({ limit: 1, silentAfterChunks: 1, chunks: 3 });
    const { script, url } = await startServed('--config', await jsonFile(1));
    const calls = send(url, 3);
    await createAdmin(() => url, STAGE_TOKEN).untilGroup('practice', { in_use: 1, queued: 2 });
    await until('the upstream has a call', () => upstream.stats().inFlight === 1);
    script.kill('SIGTERM');
    await script.untilPrinted(/SIGTERM: waiting for calls in flight/);
    const late = openCall(url, { method: 'GET', path: '/healthz' });
    await expect(late.answered).rejects.toThrow('ECONNREFUSED');
    expect(upstream.stats()).toMatchObject({ inFlight: 1, total: 1 });

    upstream.configure({ silentAfterChunks: null });
    upstream.resume();
    expect(await Promise.all(calls.map((call) => call.answered))).toEqual([200, 200, 200]);
    const ends = await Promise.all(calls.map((call) => call.ended));
    expect(ends).toEqual(['complete', 'complete', 'complete']);
    for (const call of calls) expect(call.text()).toContain('[DONE]');
    expect(await script.exited).toBe(0);
    expect(upstream.stats()).toMatchObject({ completed: 3, peak: 1, aborted: 0 });
  });

  it(
    'kill -9 of the process takes workerd along, and a restart serves in full within 2 s',
    FIGURE,
    async () => {
      upstream.configure({ limit: 2, silentAfterChunks: 1 });
      const startedAt = clock();
      const first = await startServed('--config', await jsonFile(2));
      const startMs = clock() - startedAt;
      send(first.url, 4);
      await until('all slots are held', () => upstream.stats().inFlight === 2);
      first.script.kill('SIGKILL');
      expect(await first.script.exited).toBe(null);
      await until('the upstream sees the end', () => upstream.stats().inFlight === 0);
      upstream.reset();

      const restartedAt = clock();
      const second = await startServed();
      send(second.url, 4);
      await until('all slots are held again', () => upstream.stats().inFlight === 2);
      // Or half as long again as the first start just took, on a machine that is busy with other things.
      expect(clock() - restartedAt).toBeLessThan(Math.max(2_000, 1.5 * startMs));
      expect(upstream.stats().rejected429).toBe(0);
    },
  );
});

import { expect, it, beforeAll } from 'vitest';
import { admin, chat, change, configure, until } from '../support/worker.ts';
import { strictScope, type Strict } from '../support/strict.ts';
let up: Strict;
beforeAll(async () => {
  up = await strictScope('probe', { limit: 2, chunks: 4, chunkDelayMs: 10 });
  await configure({ upstreams: [{ id: 'up', base_url: up.url }], groups: [{ name: 'g', match: { upstreams: ['up'] }, limits: { max_concurrency: 2 } , holds: { release_cooldown_ms: 0, cancel_cooldown_ms: 0}}] });
});
it('passes', async () => {
  const all = await Promise.all(Array.from({ length: 6 }, (_, i) => chat('/up/v1/chat/completions', `c${i}`)));
  console.log(all.map(r => r.status), [...all[0]!.headers]);
  await Promise.all(all.map(r => r.text()));
  const s = await up.stats();
  console.log(s.peak, s.total, s.rejected429, s.arrivals.map(a=>a.label));
  console.log((await admin('GET', '/groups/g/status')).json);
});
it('sees a change at once', async () => {
  await change('PATCH', '/groups/g', { match: { upstreams: ['openai'] } });
  const r = await chat('/up/v1/chat/completions', 'x');
  console.log(r.headers.get('headgate-groups'));
  await r.text();
});
it('leaves mid silent stream by reader.cancel', async () => {
  await change('PATCH', '/groups/g', { match: { upstreams: ['up'] } });
  await up.configure({ silentAfterChunks: 1 });
  const r = await chat('/up/v1/chat/completions', 'sil');
  const reader = r.body!.getReader();
  await reader.read();
  const t = Date.now();
  await reader.cancel();
  await until(async () => expect((await up.stats()).inFlight).toBe(0));
  console.log('cancel took', Date.now() - t, (await up.stats()).aborted);
  console.log((await admin('GET', '/groups/g/status')).json);
});
it('leaves by AbortController', async () => {
  const ac = new AbortController();
  const r = await chat('/up/v1/chat/completions', 'sil', { signal: ac.signal });
  const reader = r.body!.getReader();
  await reader.read();
  const t = Date.now();
  ac.abort();
  await until(async () => expect((await up.stats()).inFlight).toBe(0));
  console.log('abort took', Date.now() - t, (await up.stats()).aborted);
});

/** Lines of the log about a call that its provider refused, in the words that tracing tools know. */
import { expect, it, vi } from 'vitest';
import { NO_COOLDOWN } from '../support/pool.ts';
import { strictScope } from '../support/strict.ts';
import { change, configure, open, until } from '../support/worker.ts';

it('a refusal is logged with the names of the GenAI conventions, and without what was asked', async () => {
  const strict = await strictScope('logged', { limit: 1, firstByteDelayMs: 200 });
  await configure({
    upstreams: [{ id: 'practice', base_url: strict.url, dialect: 'openai' }],
    groups: [
      {
        name: 'logged',
        match: { models: ['gpt-*'], upstreams: ['practice'] },
        limits: { max_concurrency: 2 },
        holds: NO_COOLDOWN,
      },
    ],
  });
  const lines: string[] = [];
  const spy = vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  const init = { headers: { authorization: 'Bearer sk-never-logged' } };
  const calls = ['a secret question', 'another one'].map((label) =>
    open('/practice/v1/chat/completions', label, init),
  );
  await Promise.all(calls.map(({ end }) => end));
  await until(() => expect(lines.join('\n')).toContain('upstream_refused'));
  spy.mockRestore();
  const refused = lines
    .map((line) => JSON.parse(line))
    .find(({ event }) => event === 'upstream_refused');
  expect(refused).toMatchObject({
    upstream: 'practice',
    model: 'gpt-4o-mini',
    groups: 'logged',
    status: 429,
    'gen_ai.provider.name': 'practice',
    'gen_ai.request.model': 'gpt-4o-mini',
    'error.type': refused.kind,
  });
  expect(lines.join('\n')).not.toMatch(/question|another one|sk-never/);
});

it('a refusal is logged with its model, even if no group needed to read it before', async () => {
  const strict = await strictScope('unread', { limit: 4 });
  await configure({
    upstreams: [{ id: 'unread', base_url: strict.url, dialect: 'openai' }],
    groups: [{ name: 'unread', match: { upstreams: ['unread'] }, on_saturated: 'reject' }],
  });
  await strict.failNext('overload');
  const lines: string[] = [];
  const spy = vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  await open('/unread/v1/chat/completions', 'refused').end;
  spy.mockRestore();
  const refused = lines
    .map((line) => JSON.parse(line))
    .find(({ event }) => event === 'upstream_refused');
  expect(refused).toMatchObject({ model: 'gpt-4o-mini', 'gen_ai.request.model': 'gpt-4o-mini' });
});

it('an act of an operator is a line of the log, with its version', async () => {
  await configure({ groups: [{ name: 'acted', limits: { max_concurrency: 2 } }] });
  const lines: string[] = [];
  const spy = vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  const { json } = await change('POST', '/groups/acted/pause');
  spy.mockRestore();
  expect(lines.map((line) => JSON.parse(line))).toContainEqual({
    event: 'operator_act',
    level: 'info',
    actor: 'admin-token',
    action: 'group acted: pause',
    version: json.version,
  });
});

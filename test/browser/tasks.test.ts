import { writeFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { openChat, type LifecycleOpenCall } from '../e2e/support/lifecycle-call.ts';
import { NO_HOLDS, startStage, type LifecycleStage } from '../e2e/support/lifecycle-stage.ts';
import { startBrowser, VIEWS, type RealBrowser, type View } from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';
import { openSilent, startLoad, type SupportLoad } from './support/load.ts';
import { SupportOperator, type Effort } from './support/operator.ts';

/**
 * Tasks of operators, each from the first page with a group under load, by mouse or finger. Each takes five clicks at most.
 * How long each took is told at the end, and never judged: it depends on the machine.
 */

const CLICKS_MAX = 5;

const PATIENCE_MS = 120_000;

vi.setConfig({ testTimeout: 2 * PATIENCE_MS });

/** `TASKS=FILE` writes the table there as Markdown. */
const REPORT = process.env['TASKS'];

let stage: LifecycleStage;
let browser: RealBrowser;
let page: Page;
let load: SupportLoad;
let stuck: LifecycleOpenCall[] = [];
const efforts: (Effort & { readonly task: string })[] = [];

const group = (name: string, limits: object) => ({
  name,
  match: { upstreams: ['practice'], models: [name] },
  limits,
  holds: NO_HOLDS,
  track_usage: 'always',
  // Every call that waited is kept.
  log: { slow_ms: 1 },
});

beforeAll(async () => {
  stage = await startStage({
    // Calls of half a second.
    upstream: { limit: 100, chunks: 5, chunkDelayMs: 100 },
    config: ({ url }) => ({
      upstreams: [
        {
          id: 'practice',
          base_url: url,
          dialect: 'openai',
          prices: { '*': { input: 1, output: 1 } },
        },
      ],
      groups: [
        group('practice', { max_concurrency: 4 }),
        group('daily', { max_concurrency: 4, rpd: 10 }),
      ],
    }),
  });
  browser = await startBrowser();
  // One for each view; they stand out once they have run for three times as long as is usual, and ten seconds at least.
  stuck = ['a', 'b'].map((label) => openSilent(stage, `stuck-${label}`));
  await Promise.all(stuck.map(({ answered }) => answered));
  load = startLoad(stage, 8);
});

afterEach(() => page.context().close());

afterAll(async () => {
  load.abandon();
  for (const call of stuck) call.leave('FIN');
  await browser.close();
  await stage.close();
  const rows = efforts.map(
    ({ task, clicks, ms }) => `| ${task} | ${clicks} | ${(ms / 1_000).toFixed(1)} |`,
  );
  const table = ['| task | clicks | seconds |', '|---|--:|--:|', ...rows, ''].join('\n');
  process.stdout.write(table);
  if (REPORT !== undefined) await writeFile(REPORT, table);
});

/** Does a task from the first page on, which is live, and notes what it took. */
async function timed(
  task: string,
  act: (operator: SupportOperator) => Promise<void>,
  view?: View,
): Promise<Effort> {
  page = await signedIn(browser, stage, '/admin', view);
  // A machine that has much else to do takes its time, which is told and not judged.
  page.setDefaultTimeout(PATIENCE_MS);
  await page.getByRole('article').first().waitFor();
  const operator = new SupportOperator(page);
  await act(operator);
  const effort = operator.effort();
  efforts.push({ task, ...effort });
  return effort;
}

const groupOf = async (name: string) => stage.admin.group(name);
const configOf = async (path: string): Promise<unknown> =>
  (await stage.admin.request('GET', path)).json();

it('a limit is raised, after a look at what that does', async () => {
  const { clicks } = await timed('raise a limit', async (operator) => {
    await operator.link('practice');
    await operator.link('Edit');
    await operator.type(page.getByLabel('Max concurrency', { exact: true }), '5');
    await operator.button('Review change');
    await operator.button('Apply change');
    await expect
      .poll(async () => (await groupOf('practice')).limit)
      .toMatchObject({
        configured: 5,
      });
  });
  expect(clicks).toBeLessThanOrEqual(CLICKS_MAX);
});

it('a provider key is stored, and a group is made for it', async () => {
  const { clicks } = await timed('a provider key, with a group', async (operator) => {
    await operator.link('Upstreams');
    await operator.button('Add upstream');
    await operator.type(page.getByLabel('Id', { exact: true }), 'deepseek');
    await operator.type(page.getByLabel("Secret name of the operator's key"), 'UPSTREAM_DEEPSEEK');
    await operator.button('Save');
    await operator.button('Create group');
    await page.getByText('takes the calls to deepseek').waitFor();
  });
  expect(await configOf('/groups?limit=100')).toMatchObject({
    groups: expect.arrayContaining([
      expect.objectContaining({ match: expect.objectContaining({ upstreams: ['deepseek'] }) }),
    ]),
  });
  expect(clicks).toBeLessThanOrEqual(CLICKS_MAX);
});

it('a bad change is taken back, after a look at what that does', async () => {
  const path = '/groups/practice';
  const change = async (max_concurrency: number) =>
    (await stage.admin.request('PATCH', path, { limits: { max_concurrency } })).status;
  expect([await change(6), await change(3)]).toEqual([200, 200]);
  const { clicks } = await timed('take a bad change back', async (operator) => {
    await operator.link('Audit');
    await operator.button(/^Undo this change: version/);
    await operator.click(
      page.getByRole('dialog').getByRole('button', { name: 'Undo this change' }),
    );
    await expect
      .poll(async () => (await groupOf('practice')).limit)
      .toMatchObject({
        configured: 6,
      });
  });
  expect(clicks).toBeLessThanOrEqual(CLICKS_MAX);
});

it('one call is found by the id of its answer, and says why it waited', async () => {
  const call = openChat(stage.url(), { label: 'found' });
  await call.ended;
  const lease = String(call.headers()['headgate-lease']);
  const { clicks } = await timed('one call by its id', async (operator) => {
    await operator.press('/');
    await operator.type(page.getByLabel('Find a call, agent, tenant, key or group'), lease);
    await operator.press('Enter');
    const calls = page.locator('.calls > li');
    await expect.poll(() => calls.count(), { timeout: PATIENCE_MS }).toBe(1);
    await operator.click(calls.locator('summary'));
    await page.getByText(lease, { exact: true }).waitFor();
  });
  expect(clicks).toBeLessThanOrEqual(CLICKS_MAX);
});

it('why calls waited at a time is read off the charts of that time', async () => {
  const { clicks } = await timed('why calls waited at some time', async (operator) => {
    await operator.link('practice');
    await operator.button('24 hours');
    const charts = page.getByRole('region', { name: 'History' });
    const causes = charts.locator('figure').filter({ hasText: 'Wait reasons' });
    await causes.locator('canvas').waitFor();
    // Only the answer for a chosen stretch of time names its end.
    const reported = page.waitForResponse((answer) => new URL(answer.url()).searchParams.has('to'));
    // Beyond the right edge, so that it reaches to now: the calls are seconds old.
    await operator.drag(causes.locator('.u-over'), 0.85, 1.02);
    await (await reported).finished();
    expect(new URL(page.url()).searchParams.has('from')).toBe(true);
    await causes.getByText(/all slots in use/).waitFor();
  });
  expect(clicks).toBeLessThanOrEqual(CLICKS_MAX);
});

it('whoever looks is warned at 80 % of a limit of a day', async () => {
  const { clicks } = await timed('be warned at 80 %', async (operator) => {
    for (let calls = 0; calls < 8; calls += 1) {
      await openChat(stage.url(), { label: `daily-${calls}`, model: 'daily' }).ended;
    }
    const warnings = page.getByRole('region', { name: /^Recent warnings/ });
    await warnings.getByText(/80 %/).waitFor();
    await operator.click(warnings.getByRole('link', { name: 'daily' }));
    await page.getByRole('heading', { name: 'daily', level: 1 }).waitFor();
  });
  expect(clicks).toBeLessThanOrEqual(CLICKS_MAX);
});

it.each([
  ['desktop', VIEWS.desktop],
  ['phone', VIEWS.phone],
] as const)('who holds a slot is found, and the slot is freed: %s', async (where, view) => {
  const ends = stuck.map(async (call) => {
    await call.ended;
    return call;
  });
  const { clicks } = await timed(
    `find who holds a slot, and free it: ${where}`,
    async (operator) => {
      await operator.click(page.locator('a[href="/admin/groups/practice"]'));
      await operator.click(page.locator('button.hold.old'));
      await operator.button('Release');
      const freed = await Promise.race(ends);
      stuck = stuck.filter((call) => call !== freed);
      expect(freed.text()).not.toContain('[DONE]');
    },
    view,
  );
  expect(clicks).toBe(3);
});

// These are the last, because from then on every call needs a key.
it('a key with a limit and a budget is made', async () => {
  const { clicks } = await timed('a key with a limit and a budget', async (operator) => {
    await operator.link('Keys');
    await operator.button('New key');
    await operator.type(page.getByLabel('Id', { exact: true }), 'team-blue');
    await operator.type(page.getByLabel('Max concurrency', { exact: true }), '2');
    await operator.type(page.getByLabel('Budget per day', { exact: true }), '5');
    await operator.button('Create key');
    // The load of these tests comes without keys.
    await operator.button('Create key anyway');
    await page.getByLabel('Secret', { exact: true }).waitFor();
  });
  expect(await configOf('/keys/team-blue')).toMatchObject({
    limits: { max_concurrency: 2, budget_usd: { per_day: 5 } },
  });
  // One more confirms that callers without a key are refused from then on.
  expect(clicks).toBeLessThanOrEqual(CLICKS_MAX + 1);
});

it('what a key and its team have cost this month is read off', async () => {
  const made = await stage.admin.request('POST', '/keys', { id: 'ci', team: 'apps' });
  const { secret } = (await made.json()) as { secret: string };
  const url = `${stage.url()}/practice/v1/chat/completions`;
  const body = JSON.stringify({ model: 'practice', messages: [{ role: 'user', content: 'x' }] });
  const headers = { 'content-type': 'application/json', 'headgate-key': secret };
  // Workers hear of a new key within seconds.
  const ask = async () => {
    const answer = await fetch(url, { method: 'POST', headers, body });
    await answer.text();
    return answer.status;
  };
  await expect.poll(ask, { timeout: PATIENCE_MS }).toBe(200);
  const { clicks } = await timed('the cost of a key and its team this month', async (operator) => {
    await operator.link('Costs');
    const cost = (name: string) =>
      page.getByRole('row').filter({ has: page.getByRole('rowheader', { name, exact: true }) });
    await cost('ci').getByText('$').first().waitFor();
    await operator.button('Team');
    await cost('apps').getByText('$').first().waitFor();
  });
  expect(clicks).toBeLessThanOrEqual(CLICKS_MAX);
});

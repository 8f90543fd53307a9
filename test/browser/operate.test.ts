import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { openChat } from '../e2e/support/lifecycle-call.ts';
import { NO_HOLDS, startStage, type LifecycleStage } from '../e2e/support/lifecycle-stage.ts';
import { startBrowser, type RealBrowser } from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';
import { openSilent, startLoad, type SupportLoad } from './support/load.ts';

/** Handling of a group by a person with a browser, while callers use it. */

let stage: LifecycleStage;
let browser: RealBrowser;
let page: Page;
let load: SupportLoad | null = null;

/** Calls of half a second. */
const UPSTREAM = { limit: 100, chunks: 5, chunkDelayMs: 100 };

beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

beforeEach(async () => {
  stage = await startStage({
    upstream: UPSTREAM,
    config: ({ url }) => ({
      upstreams: [{ id: 'practice', base_url: url, dialect: 'openai' }],
      groups: [
        {
          name: 'practice',
          match: { upstreams: ['practice'], models: ['practice'] },
          limits: { max_concurrency: 2 },
          holds: NO_HOLDS,
        },
      ],
    }),
  });
});

afterEach(async () => {
  await load?.stop();
  load = null;
  await page.context().close();
  await stage.close();
});

const openGroup = async (name = 'practice'): Promise<void> => {
  page = await signedIn(browser, stage, `/admin/groups/${name}`);
  await page.getByRole('heading', { name, level: 1 }).waitFor();
};
const rows = (region: 'In flight' | 'Queued') =>
  page.getByRole('region', { name: new RegExp(`^${region}`) }).locator('tbody tr');

it('calls are seen to queue and to drain, without a reload', async () => {
  await openGroup();
  await expect.poll(() => rows('In flight').count()).toBe(0);
  const held = ['a', 'b'].map((label) => openSilent(stage, label));
  await Promise.all(held.map((call) => call.answered));
  const waiting = openChat(stage.url(), { label: 'c' });
  await expect.poll(() => rows('In flight').count()).toBe(2);
  await expect.poll(() => rows('Queued').count()).toBe(1);
  await page.getByText('full', { exact: true }).first().waitFor();
  for (const call of held) call.leave('FIN');
  expect(await waiting.ended).toBe('complete');
  await expect.poll(() => rows('In flight').count()).toBe(0);
  await expect.poll(() => rows('Queued').count()).toBe(0);
});

it('a group is made in the form, with a preview, and takes the next call', async () => {
  page = await signedIn(browser, stage, '/admin');
  await page.getByRole('link', { name: 'New group' }).click();
  await page.getByLabel('Name', { exact: true }).fill('tiny');
  await page.getByLabel('Models', { exact: true }).fill('tiny-model');
  await page.getByLabel('Max concurrency', { exact: true }).fill('1');
  await page.getByRole('button', { name: 'Review change' }).click();
  await page.getByRole('dialog', { name: 'Create tiny' }).waitFor();
  expect(await stage.admin.request('GET', '/groups/tiny').then(({ status }) => status)).toBe(404);
  await page.getByRole('button', { name: 'Create group' }).click();
  await page.getByRole('heading', { name: 'tiny', level: 1 }).waitFor();
  expect(await (await stage.admin.request('GET', '/groups/tiny')).json()).toMatchObject({
    match: { models: ['tiny-model'] },
    limits: { max_concurrency: 1 },
  });
  const call = openChat(stage.url(), { label: 'tiny', model: 'tiny-model' });
  expect(await call.ended).toBe('complete');
  await expect.poll(async () => (await stage.admin.group('tiny')).granted_total).toBe(1);
});

it('an automatic group gets limits of its own with one click, and a call that runs there keeps its slot', async () => {
  const name = 'auto:practice';
  const model = 'other-model';
  const silent = { 'x-strict-silent-after-chunks': '1' };
  const held = openChat(stage.url(), { label: 'held', model, headers: silent });
  await held.answered;
  page = await signedIn(browser, stage, `/admin/groups/${encodeURIComponent(name)}`);
  await page.getByRole('button', { name: 'Set limits' }).click();
  await page.getByRole('heading', { name: `Edit ${name}` }).waitFor();
  await page.getByLabel('Max concurrency', { exact: true }).fill('1');
  expect(await page.getByLabel('Models', { exact: true }).count()).toBe(0);
  await page.getByRole('button', { name: 'Review change' }).click();
  await page.getByRole('button', { name: 'Apply change' }).click();
  await page.getByRole('heading', { name, level: 1 }).waitFor();
  await expect.poll(() => rows('In flight').count()).toBe(1);
  const next = openChat(stage.url(), { label: 'next', model });
  await expect.poll(() => rows('Queued').count()).toBe(1);
  expect(stage.upstream.stats().inFlight).toBe(1);
  held.leave('FIN');
  expect(await next.ended).toBe('complete');
});

it('a lowered limit shows what it does first, then holds for the load that goes on', async () => {
  load = startLoad(stage, 6);
  await openGroup();
  await expect.poll(() => rows('In flight').count()).toBe(2);
  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel('Max concurrency', { exact: true }).fill('1');
  await page.getByRole('button', { name: 'Review change' }).click();
  const dialog = page.getByRole('dialog', { name: 'Change practice' });
  await dialog.getByText('limits.max_concurrency').first().waitFor();
  await dialog.getByRole('button', { name: 'Apply change' }).click();
  await page.getByRole('heading', { name: 'practice', level: 1 }).waitFor();
  await expect.poll(async () => (await stage.admin.group('practice')).in_use).toBe(1);
  stage.upstream.reset();
  const { arrivals: before } = stage.upstream.stats();
  await expect
    .poll(() => stage.upstream.stats().arrivals.length)
    .toBeGreaterThan(before.length + 3);
  expect(stage.upstream.stats().peak).toBe(1);
});

it('everything is paused and goes on, which every page says; and the calls of an agent run leave all queues', async () => {
  await stage.admin.setLimit('practice', 1);
  const held = openSilent(stage, 'held');
  await held.answered;
  const runaway = openChat(stage.url(), {
    label: 'runaway',
    headers: { 'headgate-agent': 'run' },
  });
  page = await signedIn(browser, stage, '/admin');
  await page.getByRole('link', { name: 'Bulk actions' }).click();
  await page.getByLabel('Agent run').fill('run');
  await page.getByRole('button', { name: 'Cancel calls …' }).click();
  const question = page.getByRole('dialog', { name: 'Cancel 1 call?' });
  await question.getByText('practice (1)').waitFor();
  await question.getByRole('button', { name: 'Cancel calls' }).click();
  await runaway.ended;
  expect(await runaway.answered).toBe(409);
  await page.getByRole('button', { name: 'Pause everything' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Pause everything' }).click();
  await page.getByText('Everything is paused.').first().waitFor();
  const late = openChat(stage.url(), { label: 'late', model: 'other-model' });
  held.leave('FIN');
  await page.getByRole('link', { name: 'Groups', exact: true }).click();
  const banner = page.getByRole('status').filter({ hasText: 'Everything is paused.' });
  expect(stage.upstream.stats().arrivals.map(({ label }) => label)).toEqual(['held']);
  await banner.getByRole('button', { name: 'Resume everything' }).click();
  expect(await late.ended).toBe('complete');
  await banner.waitFor({ state: 'detached' });
});

it('a pause stops grants until it is resumed', async () => {
  load = startLoad(stage, 4);
  await openGroup();
  await expect.poll(() => rows('In flight').count()).toBe(2);
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click();
  await page.getByText('paused', { exact: true }).first().waitFor();
  await expect.poll(() => rows('In flight').count()).toBe(0);
  await expect.poll(() => rows('Queued').count()).toBe(4);
  const { arrivals } = stage.upstream.stats();
  await page.getByRole('button', { name: 'Resume' }).click();
  await expect.poll(() => stage.upstream.stats().arrivals.length).toBeGreaterThan(arrivals.length);
});

it('a stuck lease is taken back: its caller is cut off, and the next one gets the slot', async () => {
  await stage.admin.setLimit('practice', 1);
  const stuck = openSilent(stage, 'stuck');
  await stuck.answered;
  const next = openChat(stage.url(), { label: 'next' });
  await openGroup();
  await expect.poll(() => rows('In flight').count()).toBe(1);
  await expect.poll(() => rows('Queued').count()).toBe(1);
  await page.getByRole('button', { name: /^Release the slot/ }).click();
  const dialog = page.getByRole('dialog', { name: 'Release this slot?' });
  await dialog.getByText('Headgate aborts the upstream call').waitFor();
  await dialog.getByRole('button', { name: 'Release' }).click();
  await stuck.ended;
  expect(stuck.text()).not.toContain('[DONE]');
  expect(await next.ended).toBe('complete');
  expect(stage.upstream.stats().peak).toBe(1);
  await expect.poll(() => rows('In flight').count()).toBe(0);
  await expect.poll(() => stage.upstream.stats().inFlight).toBe(0);
});

it('a call that waits is taken out of the queue, and is told so', async () => {
  const held = ['a', 'b'].map((label) => openSilent(stage, label));
  await Promise.all(held.map((call) => call.answered));
  const waiting = openChat(stage.url(), { label: 'c' });
  await openGroup();
  await expect.poll(() => rows('Queued').count()).toBe(1);
  await page.getByRole('button', { name: /^Cancel the call/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove call' }).click();
  expect(await waiting.answered).toBe(409);
  expect(waiting.headers()['headgate-reason']).toBe('cancelled');
  await expect.poll(() => rows('Queued').count()).toBe(0);
  for (const call of held) call.leave('FIN');
});

it('a feed that falls silent is shown as offline, and goes on by itself', async () => {
  await openGroup();
  const badge = page.locator('.badge');
  await expect.poll(() => badge.textContent()).toBe('live');
  process.kill(stage.workerdPid(), 'SIGSTOP');
  // The server says every 2 s that it is there, and the page gives it 5. The browser itself would notice nothing.
  await expect.poll(() => badge.textContent(), { timeout: 45_000 }).toContain('offline');
  process.kill(stage.workerdPid(), 'SIGCONT');
  await expect.poll(() => badge.textContent()).toBe('live');
});

it('none of this made the page complain', () => {
  expect(browser.complaints).toEqual([]);
});

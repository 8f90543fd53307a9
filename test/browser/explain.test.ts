import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openChat, type LifecycleOpenCall } from '../e2e/support/lifecycle-call.ts';
import { practiceConfig, startStage, type LifecycleStage } from '../e2e/support/lifecycle-stage.ts';
import { startBrowser, type RealBrowser } from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';
import { openSilent } from './support/load.ts';

/** Why a call waited, what a group did, and where a call would go: what operators ask when somebody complains. */

let stage: LifecycleStage;
let browser: RealBrowser;
let page: Page;

/** A call that waited behind another one, and one that did not want to. */
let waited: LifecycleOpenCall;

beforeAll(async () => {
  stage = await startStage({ config: practiceConfig(1) });
  browser = await startBrowser();
  const holder = openSilent(stage, 'holder');
  await holder.answered;
  waited = openChat(stage.url(), { label: 'waited' });
  await stage.admin.untilGroup('practice', { queued: 1 });
  const busy = openChat(stage.url(), { label: 'busy', headers: { 'headgate-max-wait': '0' } });
  await busy.answered;
  holder.leave('FIN');
  await waited.ended;
  page = await signedIn(browser, stage, '/admin/groups/practice');
});

afterAll(async () => {
  await browser.close();
  await stage.close();
});

const calls = () => page.getByRole('region', { name: 'Explain a call' }).locator('.calls > li');

it('a call is explained by the headgate-lease of its answer', async () => {
  await expect.poll(() => calls().count()).toBe(3);
  const lease = String(waited.headers()['headgate-lease']);
  await page.getByLabel('headgate-lease of the response').fill(lease);
  await page.getByRole('button', { name: 'Find' }).click();
  await expect.poll(() => calls().count()).toBe(1);
  await calls().locator('summary').click();
  const story = calls().locator('.story ol');
  await story.getByText('It was granted a slot.').waitFor();
  await story.getByText(/^It waited \d/).waitFor();
  await story.getByText(/^The response ended, and the slot was released/).waitFor();
});

it('a refused one is found by its outcome', async () => {
  await page.getByRole('button', { name: 'Clear search' }).click();
  await expect.poll(() => calls().count()).toBe(3);
  await page.getByLabel('Outcome').selectOption('rejected');
  await page.getByRole('button', { name: 'Find' }).click();
  await expect.poll(() => calls().count()).toBe(1);
  await expect.poll(() => calls().locator('summary').textContent()).toContain('✕ rejected');
});

it('the time before the group was made is hatched in its charts, and said', async () => {
  const bands = page.locator('.plot .gap');
  await expect.poll(() => bands.count()).toBeGreaterThan(0);
  await page.getByText(/^No data before .*: the group did not exist/).waitFor();
  const [band] = await bands.all();
  expect(await band?.getAttribute('data-label')).toMatch(/^no data before \d\d:\d\d/);
  const chart = page.locator('.chart').first();
  expect(await chart.getByRole('img').getAttribute('aria-label')).toContain('No data before');
  await chart.getByRole('button', { name: /Show as table/ }).click();
  await chart.getByRole('cell', { name: 'no data' }).first().waitFor();
  await chart.getByRole('button', { name: /Hide table/ }).click();
  await page
    .getByText(/^in total since/)
    .first()
    .waitFor();
});

it('any call is found from the one box, by its lease and by its tenant, with all that is kept of it', async () => {
  const lease = String(waited.headers()['headgate-lease']);
  await page.goto(`${stage.url()}/admin`);
  await page.getByRole('article').first().waitFor();
  const box = page.getByLabel('Find a call, agent, tenant, key or group');
  const isInBox = () => box.evaluate((field) => field === document.activeElement);
  // Keys are listened to a moment after the page is drawn.
  await expect
    .poll(async () => (await isInBox()) || (await page.keyboard.press('/'), isInBox()))
    .toBe(true);
  await page.keyboard.type(lease);
  await page.keyboard.press('Enter');
  const found = page.locator('.found-calls .calls > li');
  await expect.poll(() => found.count()).toBe(1);
  await expect
    .poll(() => found.locator('summary').textContent())
    .toMatch(/answered.*all slots in use/);
  await found.locator('summary').click();
  await found.getByText(lease.split(' ').at(-1) ?? lease).waitFor();
  const tenant = await found.locator('dt:text-is("Tenant") + dd').textContent();
  await box.fill(String(tenant));
  await page.keyboard.press('Enter');
  await expect.poll(() => found.count()).toBeGreaterThan(1);
  // A link leads there again.
  await page.reload();
  await expect.poll(() => found.count()).toBeGreaterThan(1);
  await found.first().locator('summary').click();
  await page.getByRole('link', { name: 'practice around that time' }).click();
  await page.getByRole('heading', { name: 'practice', level: 1 }).waitFor();
  expect(new URL(page.url()).searchParams.get('from')).toMatch(/^20.*Z$/);
  await page.goto(`${stage.url()}/admin/groups/practice`);
});

it('a search goes on through stretches in which nothing is found, and says how far it came', async () => {
  const address = '**/admin/api/calls?*';
  const cursors: (string | null)[] = [];
  await page.route(address, async (route) => {
    const cursor = new URL(route.request().url()).searchParams.get('cursor');
    cursors.push(cursor);
    // As a pool with many rows tells: each stretch begins where the one before ended.
    const endedAt = Number(cursor ?? Date.now()) - 3_600_000;
    const answer = await route.fetch();
    const body = { ...(await answer.json()), calls: [], next_cursor: String(endedAt) };
    await route.fulfill({ json: { ...body, searched_to: new Date(endedAt).toISOString() } });
  });
  await page.goto(`${stage.url()}/admin/calls?q=rare`);
  await page.getByText(/^No matching calls since .*\.$/).waitFor();
  expect(cursors).toHaveLength(30);
  expect(new Set(cursors).size).toBe(30);
  await page.unroute(address);
  await page.getByRole('button', { name: 'Show earlier calls' }).click();
  await page.getByText(/^No matching calls\./).waitFor();
  expect(await page.getByRole('button', { name: 'Show earlier calls' }).count()).toBe(0);
  await page.goto(`${stage.url()}/admin/groups/practice`);
});

it('a chart shows what is drawn over, in a link that leads there again; wider, and to the audit log of that time', async () => {
  const charts = page.getByRole('region', { name: 'History' });
  const canvas = charts.locator('.u-over').first();
  await canvas.waitFor();
  const box = await canvas.boundingBox();
  if (box === null) throw new Error('There is no chart.');
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * 0.4, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, y, { steps: 5 });
  await page.mouse.move(box.x + box.width * 0.95, y, { steps: 5 });
  await page.mouse.up();
  const term = (name: string) => Date.parse(new URL(page.url()).searchParams.get(name) ?? '');
  await expect.poll(() => term('to') - term('from')).toBeGreaterThan(300_000);
  expect(term('to') - term('from')).toBeLessThan(900_000);
  const [from, to] = [term('from'), term('to')];
  await charts.getByRole('button', { name: 'Zoom out' }).click();
  await expect.poll(() => term('to') - term('from')).toBeGreaterThan(to - from);
  await page.goto(
    `${stage.url()}/admin/groups/practice?from=${from}&to=${to}`.replace(
      /=(\d+)/g,
      (_all, ms: string) => `=${new Date(Number(ms)).toISOString()}`,
    ),
  );
  await charts.locator('canvas').first().waitFor();
  expect(
    await charts.getByRole('group', { name: 'Time range' }).locator('[aria-pressed=true]').count(),
  ).toBe(0);
  await page.getByRole('link', { name: 'Configuration changes in this time range' }).click();
  await page.getByRole('heading', { name: 'Audit' }).waitFor();
  await expect.poll(() => page.getByLabel('From').inputValue()).toMatch(/^20/);
  // Whatever changed the group up to now is in it, as the import of the first configuration.
  await page.goto(`${stage.url()}/admin/groups/practice`);
  await page.getByRole('link', { name: 'Configuration changes in this time range' }).click();
  await page.getByText('config: import').waitFor();
  await page.getByLabel('Actor').fill('unknown-actor');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.getByText(/^No matching entries/).waitFor();
  await page.reload();
  await page.getByText(/^No matching entries/).waitFor();
  expect(await page.getByLabel('Actor').inputValue()).toBe('unknown-actor');
  await page.goto(`${stage.url()}/admin/groups/practice`);
});

it('its charts have what happened, over each length of time', async () => {
  const charts = page.getByRole('region', { name: 'History' });
  for (const range of await charts
    .getByRole('group', { name: 'Time range' })
    .getByRole('button')
    .all()) {
    await range.click();
    await expect.poll(() => charts.locator('[aria-busy=true]').count()).toBe(0);
    expect(await charts.locator('canvas').count()).toBeGreaterThan(4);
    const grants = charts.locator('figure').filter({ hasText: 'Grants and rejections' });
    await expect.poll(() => grants.locator('.legend').textContent()).toMatch(/granted 2/);
  }
});

it('the tester shows the groups that a call would take', async () => {
  await page.goto(`${stage.url()}/admin/tester`);
  await page.getByLabel('Model', { exact: true }).fill('gpt-4o');
  await page.getByLabel('Upstream', { exact: true }).selectOption('practice');
  await page.getByRole('button', { name: 'Show route' }).click();
  const route = page.getByRole('region', { name: 'Route' });
  await route.getByRole('link', { name: 'practice' }).last().waitFor();
  await route.getByText('1 slot', { exact: false }).first().waitFor();
  await route.getByText('✓ Sent to the upstream').waitFor();
  await page.getByText('Path, lane, headers, shape').click();
  await page.getByLabel('Path after the base URL').fill('/v1/files');
  await page.getByLabel('Method').selectOption('GET');
  await page.getByRole('button', { name: 'Show route' }).click();
  await route.getByText('GET /v1/files: files').waitFor();
  await route.getByText('Passes without a slot').waitFor();
  // Nothing was sent anywhere.
  expect(stage.upstream.stats().total).toBe(2);
});

it('none of this made the page complain', () => {
  expect(browser.complaints).toEqual([]);
});

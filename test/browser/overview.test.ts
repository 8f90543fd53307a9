import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { openChat, type LifecycleOpenCall } from '../e2e/support/lifecycle-call.ts';
import { NO_HOLDS, startStage, type LifecycleStage } from '../e2e/support/lifecycle-stage.ts';
import {
  expectAccessible,
  expectNoSidewaysScroll,
  startBrowser,
  VIEWS,
  type RealBrowser,
} from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';

/** The overview of 200 groups of which few are in use: what needs somebody, and the table. */

const GROUPS = 200;
const PAUSED = Array.from({ length: 6 }, (_, index) => `nightly-batches-of-research-${index}`);
const QUIET = Array.from({ length: GROUPS - PAUSED.length - 1 }, (_, index) => `group-${index}`);

/** Those that are not idle, the most pressed first: `group-12` has a queue, `group-7` two calls. */
const PRESSED = ['broke', ...PAUSED, 'group-12', 'group-7'];
const IDLE = GROUPS - PRESSED.length;

/** Maximum of pixels of a row on a phone: two lines of text. */
const ROW_MAX = 45;

let stage: LifecycleStage;
let browser: RealBrowser;
let page: Page;
let calls: LifecycleOpenCall[] = [];

const group = (name: string, rest: object = {}) => ({
  name,
  match: { upstreams: ['practice'], models: [name] },
  limits: { max_concurrency: 4 },
  holds: NO_HOLDS,
  ...rest,
});

const hold = (model: string, index: number): LifecycleOpenCall =>
  openChat(stage.url(), {
    label: `${model}-${index}`,
    model,
    headers: { 'x-strict-silent-after-chunks': '1' },
  });

beforeAll(async () => {
  const budget = { per_day: 0, fallback_price: { input: 1, output: 1 } };
  stage = await startStage({
    upstream: { limit: 100 },
    config: ({ url }) => ({
      upstreams: [{ id: 'practice', base_url: url, dialect: 'openai' }],
      groups: [
        ...QUIET.map((name) => group(name)),
        ...PAUSED.map((name) => group(name, { paused: true })),
        group('broke', { limits: { max_concurrency: 4, budget_usd: budget } }),
      ],
    }),
  });
  browser = await startBrowser();
  calls = [
    ...Array.from({ length: 6 }, (_, index) => hold('group-12', index)),
    ...Array.from({ length: 2 }, (_, index) => hold('group-7', index)),
  ];
  await stage.admin.untilGroup('group-12', { in_use: 4, queued: 2 });
  await stage.admin.untilGroup('group-7', { in_use: 2 });
  await openChat(stage.url(), { label: 'broke', model: 'broke' }).ended;
});

afterEach(() => page.context().close());

afterAll(async () => {
  for (const call of calls) call.leave('FIN');
  await browser.close();
  await stage.close();
});

const names = (): Promise<string[]> =>
  page.locator('.groups tbody th[scope=row] bdi').allTextContents();
const head = (name: string) => page.locator('.groups thead').getByRole('button', { name });
const query = (): string => new URL(page.url()).search;
const heightOf = (): Promise<number> => page.evaluate(() => document.documentElement.scrollHeight);

async function open(path: string, view: object = {}): Promise<void> {
  page = await signedIn(browser, stage, path, view);
  await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0);
}

it('200 groups are a table, the most pressed first, and idle ones a line that opens', async () => {
  await open('/admin');
  await expect.poll(names).toEqual(PRESSED);
  const row = (name: string) => page.getByRole('row', { name: new RegExp(`^${name} `) });
  expect(await row('group-12').locator('td').allTextContents()).toEqual([
    'full',
    '4/4',
    '2',
    expect.any(String),
    '0',
    '0',
    '–',
  ]);
  expect(await row('broke').locator('td').allTextContents()).toEqual([
    'budget spent this day',
    '0/4',
    '0',
    '–',
    '1',
    '0',
    '$0',
  ]);
  const fold = page.getByRole('button', { name: `${IDLE} idle groups` });
  expect(await fold.getAttribute('aria-expanded')).toBe('false');
  await expectAccessible(page);
  await fold.click();
  await expect.poll(async () => (await names()).length).toBe(GROUPS);
  expect(query()).toBe('?idle=shown');
  await expectNoSidewaysScroll(page);
  await expectAccessible(page);
  await page.getByRole('button', { name: `${IDLE} idle groups` }).click();
  await expect.poll(names).toEqual(PRESSED);
});

it('is sorted by any column, which survives Back and is a link', async () => {
  await open('/admin');
  await head('In use').click();
  await expect.poll(async () => (await names()).slice(0, 2)).toEqual(['group-12', 'group-7']);
  expect(query()).toBe('?view=table&sort=slots');
  await head('Group').click();
  await page.getByRole('button', { name: `${IDLE} idle groups` }).click();
  await head('Group').click();
  const shown = ['nightly-batches-of-research-5', 'nightly-batches-of-research-4'];
  await expect.poll(async () => (await names()).slice(0, 2)).toEqual(shown);
  expect(await page.getByRole('columnheader', { name: 'Group' }).getAttribute('aria-sort')).toBe(
    'descending',
  );
  const before = await names();
  expect(before).toHaveLength(GROUPS);
  expect(before.at(-2)).toBe('group-1');
  const link = page.url();
  await page.getByRole('link', { name: 'group-7', exact: true }).first().click();
  await page.getByRole('heading', { name: 'group-7', level: 1 }).waitFor();
  await page.goBack();
  await expect.poll(names).toEqual(before);
  expect(page.url()).toBe(link);
  // Back leads out of the page, and not through each press.
  const path = link.slice(stage.url().length);
  await page.context().close();
  await open(path);
  await expect.poll(names).toEqual(before);
  await head('Group').click();
  await expect.poll(async () => (await names())[0]).toBe('broke');
  expect(query()).toBe('?view=table&idle=shown');
});

it('what is looked for stands in the link, idle or not, also for cards', async () => {
  await open('/admin');
  await page.getByLabel('Search groups').fill('group-19');
  const found = QUIET.filter((name) => name.includes('group-19')).toSorted();
  await expect.poll(async () => (await names()).toSorted()).toEqual(found);
  await page.getByRole('link', { name: 'group-191' }).click();
  await page.getByRole('heading', { name: 'group-191', level: 1 }).waitFor();
  await page.goBack();
  expect(await page.getByLabel('Search groups').inputValue()).toBe('group-19');
  await expect.poll(async () => (await names()).toSorted()).toEqual(found);
  await page.getByRole('button', { name: 'Cards' }).click();
  await expect.poll(() => page.getByRole('article').count()).toBe(found.length);
  expect(query()).toBe('?q=group-19&view=cards');
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await page.getByLabel('State').selectOption('budget spent');
  await expect.poll(() => page.getByRole('article').count()).toBe(1);
  await page.reload();
  await page.getByRole('article').waitFor();
  expect(await page.getByLabel('State').inputValue()).toBe('budget spent');
  expect(query()).toBe('?view=cards&state=budget+spent');
});

it('200 groups on a phone are rows of two lines', async () => {
  await open('/admin', { ...VIEWS.phone, scheme: 'dark' });
  await expect.poll(names).toEqual(PRESSED);
  const search = await page.getByRole('searchbox', { name: /^Find a call/ }).boundingBox();
  expect(search?.width).toBeGreaterThan(96);
  // What was 35 screens is two.
  expect(await heightOf()).toBeLessThan(2 * VIEWS.phone.height);
  await page.getByRole('button', { name: `${IDLE} idle groups` }).click();
  await expect.poll(async () => (await names()).length).toBe(GROUPS);
  const heights = await page
    .locator('.groups tbody tr:has(th)')
    .evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().height));
  expect(heights).toHaveLength(GROUPS);
  expect(Math.max(...heights)).toBeLessThanOrEqual(ROW_MAX);
  expect(await heightOf()).toBeLessThan(GROUPS * ROW_MAX + 2 * VIEWS.phone.height);
  // Nothing of a row is cut off: its figures are in the second line.
  const [first, second] = await page
    .getByRole('row', { name: /^group-12 / })
    .evaluate((row) =>
      [...row.children].map((cell) => Math.round(cell.getBoundingClientRect().top)),
    );
  expect(second).toBeLessThan((first ?? 0) + 8);
  const wide = await page
    .getByRole('row', { name: /^nightly-batches-of-research-0 / })
    .getByRole('rowheader')
    .evaluate((name) => name.scrollWidth - name.clientWidth);
  expect(wide).toBeLessThanOrEqual(0);
  const cut = await page
    .locator('.groups tbody tr:has(th) :is(.number, .is)')
    .evaluateAll((cells) =>
      cells
        .filter((cell) => {
          const [own, row] = [cell, cell.parentElement ?? cell].map((each) =>
            each.getBoundingClientRect(),
          );
          return own !== undefined && row !== undefined && own.height > 0
            ? own.bottom > row.bottom + 1 || own.right > row.right + 1
            : false;
        })
        .map((cell) => cell.textContent),
    );
  expect(cut).toEqual([]);
  await expectNoSidewaysScroll(page);
  await expectAccessible(page);
});

it('what needs attention is read in whole on a phone, the worst first, and says how many more', async () => {
  await open('/admin', VIEWS.phone);
  const section = page.getByRole('region', { name: 'Needs attention' });
  const entries = section.getByRole('listitem');
  // The last comes once a call has waited for half a minute at `group-12`: from then on nothing changes.
  await expect
    .poll(() => section.getByRole('heading').textContent(), { timeout: 60_000 })
    .toMatch(/8$/);
  expect(await entries.count()).toBe(3);
  const worst = entries.first();
  expect(await worst.textContent()).toMatch(
    /^broke.*budget spent.*The budget for this day is \$0\./,
  );
  // The red of what is broken, and not the green of what flows.
  const [shown, red] = await worst.locator('.state').evaluate((state) => {
    const probe = document.createElement('i');
    probe.style.color = 'var(--broken)';
    document.body.append(probe);
    return [getComputedStyle(state).color, getComputedStyle(probe).color];
  });
  expect(shown).toBe(red);
  // Of each entry the reason has a line of its own, and all of it is there.
  const reasons = await section.locator('li > :last-child').evaluateAll((all) =>
    all.map((reason) => {
      const box = reason.getBoundingClientRect();
      const link = reason.parentElement?.querySelector('a')?.getBoundingClientRect();
      return {
        isBelow: link !== undefined && box.top >= link.bottom - 4,
        isCut:
          reason.scrollHeight > reason.clientHeight + 1 || reason.scrollWidth > reason.clientWidth,
      };
    }),
  );
  expect(reasons).toEqual(Array.from({ length: 3 }, () => ({ isBelow: true, isCut: false })));
  await expectAccessible(page);
  const height = await section.evaluate((element) => element.getBoundingClientRect().height);
  const inside = await section.evaluate((element) => element.scrollHeight - element.clientHeight);
  expect(height).toBeLessThan(VIEWS.phone.height / 3);
  expect(inside).toBeLessThanOrEqual(1);
  await section.getByRole('button', { name: 'Show 5 more' }).click();
  await expect.poll(() => entries.count()).toBe(8);
  for (const target of await section.locator('a, button').all()) {
    const box = await target.boundingBox();
    expect(Math.min(box?.width ?? 0, box?.height ?? 0)).toBeGreaterThanOrEqual(24);
  }
  await expectNoSidewaysScroll(page);
  await expectAccessible(page);
  await section.getByRole('button', { name: 'Show 3' }).click();
  await expect.poll(() => entries.count()).toBe(3);
}, 120_000);

it('the page complains of nothing', async () => {
  await open('/admin?view=table&sort=constructor&state=odd&idle=7');
  await expect.poll(names).toEqual(PRESSED);
  expect(browser.complaints).toEqual([]);
});

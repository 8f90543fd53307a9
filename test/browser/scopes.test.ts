import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import {
  openChat,
  type ChatOptions,
  type LifecycleOpenCall,
} from '../e2e/support/lifecycle-call.ts';
import { practiceConfig, startStage, type LifecycleStage } from '../e2e/support/lifecycle-stage.ts';
import {
  expectAccessible,
  expectNoSidewaysScroll,
  startBrowser,
  VIEWS,
  type RealBrowser,
} from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';

/** Refusals that are about some calls only, on the pages of their group and their upstream. */

let stage: LifecycleStage;
let browser: RealBrowser;
let page: Page;
const calls: LifecycleOpenCall[] = [];

/** A name of the length that callers may choose, with markup and a mark that turns the direction of text. */
const MODEL = `full-<b>model</b>-\u202e${'of-a-long-name-'.repeat(4)}`;

const SLOW = { 'x-strict-silent-after-chunks': '1' };

function send(model: string, rest: Partial<ChatOptions> = {}): LifecycleOpenCall {
  const call = openChat(stage.url(), { label: `scopes-${calls.length}`, model, ...rest });
  calls.push(call);
  return call;
}

async function answers(call: LifecycleOpenCall, wanted: number): Promise<void> {
  const status = await call.answered;
  if (status !== wanted) throw new Error(`a call was answered with ${status}`);
}

beforeAll(async () => {
  stage = await startStage({
    config: practiceConfig(9, { queue: { timeout_ms: 900_000 } }),
    // The upstream takes one call at a time with the key of a small plan.
    upstream: { limitsByKey: { 'sk-small': 1 } },
  });
  browser = await startBrowser();
  const full = { 'x-strict-fail': 'requests', 'x-strict-fail-wait-ms': '600000' };
  const refused = send(MODEL, { headers: { ...full, 'headgate-max-wait': '0' } });
  await answers(refused, 429);
  await answers(send('free'), 200);
  send(MODEL, { headers: { 'headgate-max-wait': '890s' } });
  const small = { key: 'sk-small', headers: SLOW };
  await answers(send('free', small), 200);
  send('free', small);
  await stage.admin.untilGroup('practice', { queued: 2 });
});

afterEach(() => page.context().close());

afterAll(async () => {
  for (const call of calls) call.leave('RST');
  await browser.close();
  await stage.close();
});

const cellsOf = (row: Locator): Promise<string[]> => row.getByRole('cell').allInnerTexts();

it.each([
  ['a desktop', VIEWS.desktop],
  ['a phone', VIEWS.phone],
])('the page of a group lists the calls that are stopped, on %s', async (_where, view) => {
  page = await signedIn(browser, stage, '/admin/groups/practice', view);
  await page.getByText('partly paused').first().waitFor();
  const table = page.getByRole('region', { name: 'Upstream refuses these calls only' });
  expect(await table.getByRole('columnheader').allInnerTexts()).toEqual([
    'Calls',
    'State',
    'Ends',
    'Queued',
    'Message of the upstream',
  ]);
  const full = await cellsOf(table.getByRole('row').filter({ hasText: MODEL }));
  expect(full[0]).toMatch(/^model full-<b>model<\/b>-.*, key fp_\w+$/);
  expect(full.slice(1)).toEqual([
    'paused',
    expect.stringMatching(/min/),
    '1',
    expect.stringContaining('Rate limit reached'),
  ]);
  const limited = table.getByRole('row').filter({ hasText: 'learned' });
  expect(await cellsOf(limited)).toEqual([
    expect.stringMatching(/^key fp_\w+$/),
    'limit of 1 learned',
    '–',
    '1',
    expect.any(String),
  ]);
  await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0);
  await expectNoSidewaysScroll(page);
  await expectAccessible(page);
  expect(browser.complaints).toEqual([]);
});

it.each([
  ['a desktop', VIEWS.desktop],
  ['a phone', VIEWS.phone],
])('the upstream is partly paused, and names the first of them, on %s', async (_where, view) => {
  page = await signedIn(browser, stage, '/admin/upstreams', view);
  const row = page.getByRole('listitem').filter({ hasText: 'practice' }).first();
  const health = row.locator('.health');
  await health.getByText('partly paused').waitFor();
  expect(await health.innerText()).toMatch(/: (?:model full-<b>|key fp_).* and 1 more, ends /s);
  await expectNoSidewaysScroll(page);
  await expectAccessible(page);
  expect(browser.complaints).toEqual([]);
});

it('the list of groups calls the group partly paused', async () => {
  page = await signedIn(browser, stage);
  await page.getByText('partly paused').first().waitFor();
  await page.getByText(/The upstream accepts no calls with .* and 1 more/).waitFor();
  await expectAccessible(page);
  expect(browser.complaints).toEqual([]);
});

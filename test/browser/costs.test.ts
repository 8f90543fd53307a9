import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { NO_HOLDS, startStage, type LifecycleStage } from '../e2e/support/lifecycle-stage.ts';
import {
  expectAccessible,
  expectNoSidewaysScroll,
  startBrowser,
  VIEWS,
  type RealBrowser,
} from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';

/** Costs of a key and of its team this month, and a budget for a team, by an operator in a browser. */

let stage: LifecycleStage;
let browser: RealBrowser;
let page: Page;

/** 100,000 tokens in and out, at a dollar a million each. */
const CALL = '$0.2';

beforeAll(async () => {
  stage = await startStage({
    upstream: { limit: 10, inputTokens: 100_000, outputTokens: 100_000 },
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
        {
          name: 'practice',
          match: { upstreams: ['practice'] },
          limits: { max_concurrency: 10 },
          track_usage: 'always',
          holds: NO_HOLDS,
        },
        { name: 'uncounted', match: { models: ['other-*'] }, track_usage: 'off' },
      ],
    }),
  });
  browser = await startBrowser();
  const secrets = [
    await makeKey('ci', 'apps'),
    await makeKey('web', 'apps'),
    await makeKey('lone'),
  ];
  // One more of the first: a row is nobody else's.
  for (const secret of [...secrets, secrets[0] ?? '']) await ask(secret);
  await until(async () => {
    const answer = await stage.admin.request('GET', '/costs?by=key');
    const { total } = (await answer.json()) as { total: { calls: number } };
    if (total.calls !== 4) throw new Error(`${total.calls} calls are counted`);
  });
});

afterAll(async () => {
  await browser.close();
  await stage.close();
});

afterEach(() => page.context().close());

async function makeKey(id: string, team?: string): Promise<string> {
  const answer = await stage.admin.request('POST', '/keys', { id, ...(team && { team }) });
  const { secret } = (await answer.json()) as { secret: string };
  return secret;
}

/** Calls with a key, of which the Worker hears within seconds. */
async function ask(secret: string, model = 'gpt-4o-mini'): Promise<void> {
  await until(async () => {
    const answer = await fetch(`${stage.url()}/practice/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'headgate-key': secret },
      body: JSON.stringify({
        model,
        max_tokens: 50,
        messages: [{ role: 'user', content: 'hello' }],
      }),
    });
    await answer.text();
    if (answer.status !== 200) throw new Error(`the call was answered with ${answer.status}`);
  });
}

function until(check: () => Promise<void>): Promise<void> {
  return vi.waitFor(check, { timeout: 30_000, interval: 100 });
}

/** Clicks, and counts how often. */
function counting(on: Page) {
  let clicks = 0;
  return {
    click: async (role: 'link' | 'button', name: string): Promise<void> => {
      clicks += 1;
      await on.getByRole(role, { name, exact: true }).first().click();
    },
    count: () => clicks,
  };
}

const cellsOf = (name: string): Promise<string[]> =>
  page
    .getByRole('row')
    .filter({ has: page.getByRole('rowheader', { name, exact: true }) })
    .first()
    .getByRole('cell')
    .allTextContents();

it('the cost of a key and of its team this month is two clicks away', async () => {
  page = await signedIn(browser, stage, '/admin/groups/practice');
  const { click, count } = counting(page);
  await click('link', 'Costs');
  await page.getByRole('rowheader', { name: 'ci', exact: true }).waitFor();
  expect((await cellsOf('ci'))[0]).toBe('$0.4');
  expect((await cellsOf('web'))[0]).toBe(CALL);
  await click('button', 'Team');
  await page.getByRole('rowheader', { name: 'apps', exact: true }).waitFor();
  expect((await cellsOf('apps'))[0]).toBe('$0.6');
  expect((await cellsOf('no team'))[0]).toBe(CALL);
  expect((await cellsOf('Total'))[0]).toBe('$0.8');
  expect(count()).toBe(2);
  // A link leads others to the same.
  expect(page.url()).toContain('by=team');
  await page.reload();
  await page.getByRole('rowheader', { name: 'apps', exact: true }).waitFor();
});

it('says which groups count nothing, and what there would be without the queue', async () => {
  page = await signedIn(browser, stage, '/admin/costs');
  await page.getByText('Costs are not tracked in 1 group').click();
  await page.getByRole('link', { name: 'uncounted' }).waitFor();
  await page.getByRole('heading', { name: 'Without the queue' }).waitFor();
  expect(await page.getByRole('main').textContent()).toContain('× mean cost of a call');
  await page.getByRole('button', { name: 'Last month', exact: true }).click();
  await page.getByText(/No calls were counted in \d{4}-\d\d\./).waitFor();
});

it('the same comes as CSV', async () => {
  page = await signedIn(browser, stage, '/admin/costs?by=group');
  const downloading = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download CSV' }).click();
  const download = await downloading;
  const text = await readFile(await download.path(), 'utf8');
  expect(text).toMatch(/^from,to,group,usd,/);
  expect(text).toMatch(/\d{4}-\d\d-01,\d{4}-\d\d-\d\d,practice,0\.8,400000,/);
});

it('a team gets a budget, and its keys show what is left', async () => {
  page = await signedIn(browser, stage, '/admin/keys');
  await page.getByRole('button', { name: 'Edit team apps' }).click();
  await page.getByLabel('Budget per month', { exact: true }).fill('1');
  await page.getByRole('button', { name: 'Save team' }).click();
  const teams = page.getByRole('region', { name: 'Table of teams' });
  await expect.poll(() => teams.textContent()).toContain('of $1 left');
  await page.getByRole('button', { name: 'Edit lone' }).click();
  const team = page.getByLabel('Team', { exact: true });
  await expect.poll(() => page.locator('datalist option').count()).toBe(1);
  await team.fill('apps');
  await page.getByRole('button', { name: 'Save key' }).click();
  await expect
    .poll(async () => {
      const answer = await stage.admin.request('GET', '/teams/apps');
      return ((await answer.json()) as { keys: string[] }).keys;
    })
    .toEqual(['ci', 'web', 'lone']);
  await expectAccessible(page);
});

it('a long name hides no cost on a phone', async () => {
  await ask(await makeKey('long'), 'x'.repeat(300));
  await until(async () => {
    const answer = await stage.admin.request('GET', '/costs?by=model');
    if (!(await answer.text()).includes('xxxx')) throw new Error('the call is not counted yet');
  });
  page = await signedIn(browser, stage, '/admin/costs?by=model', VIEWS.phone);
  const row = page.getByRole('row').filter({ hasText: 'xxxx' });
  await row.waitFor();
  const cost = await row.getByRole('cell').first().boundingBox();
  expect((cost?.x ?? 0) + (cost?.width ?? Infinity)).toBeLessThanOrEqual(VIEWS.phone.width);
});

it.each(['desktop', 'phone'] as const)('is accessible and fits: %s', async (view) => {
  for (const path of ['/admin/costs?by=model', '/admin/keys']) {
    page = await signedIn(browser, stage, path, VIEWS[view]);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0);
    await page.getByRole('rowheader').first().waitFor();
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
    if (path !== '/admin/keys') await page.context().close();
  }
  expect(browser.complaints).toEqual([]);
});

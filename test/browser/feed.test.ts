import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { STAGE_TOKEN } from '../e2e/support/lifecycle-stage.ts';
import { expectAccessible } from './support/chromium.ts';
import { startCountingProxy } from './support/counting-proxy.ts';
import { signedIn } from './support/dashboard.ts';
import { browser, stage } from './support/practice-stage.ts';

/** The live feed in a real browser: it comes and goes, and the page stays as it is. */

const EVENTS = '**/admin/api/events*';

/** Makes the page believe that its tab is hidden, or seen again. */
async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });
    const state = hidden ? 'hidden' : 'visible';
    Object.defineProperty(document, 'visibilityState', { configurable: true, value: state });
    document.dispatchEvent(new Event('visibilitychange'));
  }, isHidden);
}

/** The page of a group behind a proxy that counts, in a browser whose time can be put forward. */
async function countedPage() {
  const proxy = await startCountingProxy(stage.url);
  const page = await browser.open();
  await page.clock.install();
  await page.goto(`${proxy.url}/admin/groups/practice`);
  await page.getByLabel('Token').fill(STAGE_TOKEN);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('live', { exact: true }).waitFor();
  // The code of the charts and the decisions comes later than the page, and asks for them then.
  await expect.poll(() => proxy.requests.join()).toContain('/decisions?');
  await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0);
  const close = async (): Promise<void> => {
    await page.context().close();
    proxy.close();
  };
  return { page, proxy, close };
}

const limitShown = (page: Page) => page.getByRole('group', { name: /slots in use/ });

/** Notes what a page takes away, and whether it fades, from now on. */
async function noteLosses(page: Page): Promise<() => Promise<string[]>> {
  const losses = await page.evaluateHandle(() => {
    const seen: string[] = [];
    const observer = new MutationObserver((changes) => {
      for (const { removedNodes, target } of changes) {
        seen.push(...[...removedNodes].map((node) => `removed ${node.nodeName}`));
        if (target instanceof Element && target.matches('.stale, .offline')) seen.push('faded');
      }
    });
    const attributeFilter = ['class'];
    observer.observe(document.body, { subtree: true, childList: true, attributeFilter });
    return seen;
  });
  return () => losses.jsonValue();
}

it('a stream that the server ends is opened anew, and nothing of the page goes', async () => {
  const page = await signedIn(browser, stage, '/admin');
  const status = await (await stage.admin.request('GET', '/status')).text();
  let opened = 0;
  await page.route(EVENTS, async (route) => {
    opened += 1;
    if (opened > 2) return route.continue();
    // In good order, as after ten minutes.
    const body = `event: snapshot\ndata: ${status}\n\nretry: ${opened === 1 ? 2_000 : 0}\n\n`;
    return route.fulfill({ contentType: 'text/event-stream', body });
  });
  await page.reload();
  await page.getByRole('article').waitFor();
  const losses = await noteLosses(page);
  await expect.poll(() => opened).toBe(3);
  await stage.admin.setLimit('practice', 4);
  await page.getByRole('img', { name: / of 4 slots in use/ }).waitFor();
  expect((await losses()).filter((loss) => /ARTICLE|MAIN|faded/.test(loss))).toEqual([]);
  await stage.admin.setLimit('practice', 3);
});

it('a page that nobody sees for 30 s asks for nothing more, and comes back to what is so by then', async () => {
  await stage.admin.setLimit('practice', 3);
  const { page, proxy, close } = await countedPage();
  await setHidden(page, true);
  await page.clock.fastForward(29_000);
  await setHidden(page, false);
  await page.clock.fastForward(29_000);
  expect(proxy.streams()).toEqual({ opened: 1, open: 1 });

  await setHidden(page, true);
  await page.clock.fastForward(30_000);
  await expect.poll(proxy.streams).toEqual({ opened: 1, open: 0 });
  // What the page asked for while it was seen may still be on its way.
  let asked = -1;
  const isQuiet = (): boolean => {
    const before = asked;
    asked = proxy.requests.length;
    return asked === before;
  };
  await expect.poll(isQuiet, { interval: 1_000 }).toBe(true);
  await stage.admin.setLimit('practice', 5);
  await page.clock.runFor(5 * 60_000);
  expect(proxy.requests.slice(asked)).toEqual([]);
  expect(proxy.streams()).toEqual({ opened: 1, open: 0 });
  expect(await limitShown(page).getAttribute('aria-label')).toMatch(/ of 3 slots in use/);

  await setHidden(page, false);
  await page.getByRole('group', { name: / of 5 slots in use/ }).waitFor();
  expect(proxy.streams()).toEqual({ opened: 2, open: 1 });
  // What was asked for by itself is asked for anew.
  await expect.poll(() => proxy.requests.slice(asked).join()).toContain('/history');
  await page.getByText('live', { exact: true }).waitFor();
  await close();
});

it('a page that was hidden before the first word of the feed has it when it is seen', async () => {
  const page = await browser.open();
  await page.clock.install();
  await page.route(EVENTS, () => new Promise<void>(() => undefined));
  await page.goto(`${stage.url()}/admin`);
  await page.getByLabel('Token').fill(STAGE_TOKEN);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('connecting', { exact: true }).waitFor();
  await setHidden(page, true);
  await page.clock.fastForward(30_000);
  await page.unroute(EVENTS);
  await setHidden(page, false);
  await expect.poll(() => page.locator('.badge').textContent()).toBe('live');
});

it('a page whose charts have no code yet says so, and has them when the feed is back', async () => {
  const page = await browser.open();
  let isBroken = true;
  await page.route('**/admin/assets/past-*.js', (route) =>
    isBroken ? route.abort() : route.continue(),
  );
  await page.goto(`${stage.url()}/admin/groups/practice`);
  await page.getByLabel('Token').fill(STAGE_TOKEN);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Figures, charts and decisions could not be loaded.').waitFor();
  isBroken = false;
  process.kill(stage.workerdPid(), 'SIGSTOP');
  await page.getByText('offline', { exact: true }).waitFor();
  process.kill(stage.workerdPid(), 'SIGCONT');
  await expect.poll(() => page.locator('.chart canvas').count()).toBeGreaterThan(0);
  await expect.poll(() => page.locator('.calls').count()).toBe(1);
});

it('a page that nobody touches for half an hour asks, and costs nothing until it is answered', async () => {
  await stage.admin.setLimit('practice', 3);
  const { page, proxy, close } = await countedPage();
  const question = page.getByRole('dialog', { name: 'Live updates paused' });
  await page.clock.fastForward(29 * 60_000);
  await page.mouse.move(200, 200);
  await page.clock.fastForward(29 * 60_000);
  expect(await question.count()).toBe(0);
  expect(proxy.streams().open).toBe(1);

  await page.clock.fastForward(60_000);
  await question.waitFor();
  await expect.poll(() => proxy.streams().open).toBe(0);
  await page.getByText('resting', { exact: true }).waitFor();
  await expectAccessible(page);
  const asked = proxy.requests.length;
  await page.clock.runFor(10 * 60_000);
  // Neither does it come back by itself, nor because the page was hidden for a while.
  await setHidden(page, true);
  await page.clock.runFor(60_000);
  await setHidden(page, false);
  await page.mouse.move(300, 300);
  expect(proxy.requests.slice(asked)).toEqual([]);
  expect(proxy.streams().open).toBe(0);

  await stage.admin.setLimit('practice', 4);
  await page.keyboard.press('Enter');
  await question.waitFor({ state: 'hidden' });
  await page.getByRole('group', { name: / of 4 slots in use/ }).waitFor();
  expect(proxy.streams().open).toBe(1);
  await close();
});

it('charts that cannot be loaded are tables, and become charts when the feed is back', async () => {
  const page = await browser.open();
  let isBroken = true;
  await page.route('**/admin/assets/plot-*.js', (route) =>
    isBroken ? route.abort() : route.continue(),
  );
  await page.goto(`${stage.url()}/admin/groups/practice`);
  await page.getByLabel('Token').fill(STAGE_TOKEN);
  await page.getByRole('button', { name: 'Sign in' }).click();
  const tables = page.locator('.chart table');
  await tables.first().waitFor();
  expect(await tables.count()).toBe(await page.locator('.chart').count());
  expect(await page.locator('.toast').count()).toBe(0);
  isBroken = false;
  process.kill(stage.workerdPid(), 'SIGSTOP');
  await page.getByText('offline', { exact: true }).waitFor();
  process.kill(stage.workerdPid(), 'SIGCONT');
  await page.locator('.chart canvas').first().waitFor();
  await expect.poll(() => tables.count()).toBe(0);
});

it('a history that could not be read is read again when the feed is back, and nobody is told of changes', async () => {
  const page = await browser.open();
  let isBroken = true;
  await page.route('**/admin/api/groups/practice/history*', (route) =>
    isBroken ? route.abort() : route.continue(),
  );
  await page.goto(`${stage.url()}/admin/groups/practice`);
  await page.getByLabel('Token').fill(STAGE_TOKEN);
  await page.getByRole('button', { name: 'Sign in' }).click();
  const failed = page.getByText('Headgate is unreachable. The data shown may be outdated.');
  await failed.waitFor();
  isBroken = false;
  process.kill(stage.workerdPid(), 'SIGSTOP');
  await page.getByText('offline', { exact: true }).waitFor();
  process.kill(stage.workerdPid(), 'SIGCONT');
  await page.locator('.chart').first().waitFor();
  expect(await failed.count()).toBe(0);
});

/** Answers the first opening of the feed with these events, as a stream that then breaks off. */
async function firstWords(page: Page, body: string): Promise<() => number> {
  let opened = 0;
  await page.route(EVENTS, (route) => {
    opened += 1;
    if (opened > 1) return route.continue();
    return route.fulfill({ contentType: 'text/event-stream', body: `retry: 1500\n\n${body}` });
  });
  return () => opened;
}

it.each([
  { path: '/admin', shows: 'All groups' },
  { path: '/admin/groups/practice', shows: 'In flight' },
])('a word before the snapshot does not say that there is no group: $path', async (one) => {
  const page = await signedIn(browser, stage, '/admin/keys');
  const opened = await firstWords(page, 'event: beat\ndata: {"at":"2026-11-24T00:00:00Z"}\n\n');
  await page.goto(`${stage.url()}${one.path}`);
  await page.getByText('live', { exact: true }).waitFor();
  await page.locator('main [aria-busy=true]').waitFor();
  expect(opened()).toBe(1);
  await page.getByRole('heading', { name: one.shows }).waitFor();
  // It would have led to the set-up meanwhile.
  expect(new URL(page.url()).pathname).toBe(one.path);
  await page.context().close();
});

it('figures and slots of a group change with one event', async () => {
  const page = await signedIn(browser, stage, '/admin/keys');
  const { groups, version } = (await (await stage.admin.request('GET', '/status')).json()) as {
    groups: { name: string; limit: { effective: number } }[];
    version: number;
  };
  const [group] = groups;
  const lease = (id: string) => ({
    id,
    caller: 'key',
    tenant: 'key',
    agent: null,
    lane: 'normal',
    slots: 1,
    state: 'held',
    model: null,
    upstream: 'practice',
    partition: null,
    age_ms: 1_000,
    expires_at: new Date(Date.now() + 60_000).toISOString(),
  });
  const detail = {
    name: 'practice',
    leases: [lease('a'), lease('b')],
    waiters: [],
    leases_total: 2,
    waiters_total: 0,
    group: { ...group, in_use: 2 },
  };
  await firstWords(
    page,
    `event: snapshot\ndata: ${JSON.stringify({ version, paused: false, groups })}\n\n` +
      `event: detail\ndata: ${JSON.stringify(detail)}\n\n`,
  );
  await page.goto(`${stage.url()}/admin/groups/practice`);
  await page.getByRole('group', { name: /^2 of \d slots in use/ }).waitFor();
  expect(await page.locator('.leases tbody tr').count()).toBe(2);
  await page.context().close();
});

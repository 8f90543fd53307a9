import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { signedIn } from './support/dashboard.ts';
import { browser, stage } from './support/practice-stage.ts';

/** The live feed in a real browser: it comes and goes, and the page stays as it is. */

const EVENTS = '**/admin/api/events*';

/** Counts the streams that a page opens and lets go of. */
function countStreams(page: Page) {
  const streams = { opened: 0, ended: 0 };
  const isFeed = (url: string): boolean => url.includes('/admin/api/events');
  page.on('request', (request) => {
    if (isFeed(request.url())) streams.opened += 1;
  });
  page.on('requestfailed', (request) => {
    if (isFeed(request.url())) streams.ended += 1;
  });
  return streams;
}

/** Makes the page believe that its tab is hidden, or seen again. */
async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });
    document.dispatchEvent(new Event('visibilitychange'));
  }, isHidden);
}

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

it('a page that nobody sees for a minute lets go of the feed, and comes back to what is so by then', async () => {
  const page = await signedIn(browser, stage, '/admin/groups/practice');
  await page.getByText('live', { exact: true }).waitFor();
  const streams = countStreams(page);
  await page.clock.install();
  await setHidden(page, true);
  await page.clock.fastForward(59_000);
  await setHidden(page, false);
  await page.clock.fastForward(59_000);
  expect(streams).toEqual({ opened: 0, ended: 0 });

  await setHidden(page, true);
  await page.clock.fastForward(60_000);
  await expect.poll(() => streams.ended).toBe(1);
  await stage.admin.setLimit('practice', 5);
  const picture = page.getByRole('group', { name: /slots in use/ });
  expect(await picture.getAttribute('aria-label')).toMatch(/ of 3 slots in use/);
  await setHidden(page, false);
  await expect.poll(() => picture.getAttribute('aria-label')).toMatch(/ of 5 slots in use/);
  expect(streams).toEqual({ opened: 1, ended: 1 });
});

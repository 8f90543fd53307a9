import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
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

/** A slot is freed in a hurry, on the phone too, whatever callers call themselves. */

const LONG = 'a-name-that-does-not-end-'.repeat(8);
/** The longest name that a group may have. */
const LONGEST = 'g'.repeat(64);
const HEBREW = 'מודל מחקר 🚀';

/** Names as callers may choose them. */
const CALLERS = [
  { label: 'long', model: LONG, agent: LONG },
  { label: 'hebrew', model: HEBREW, agent: 'researcher' },
  { label: 'plain', model: 'gpt-5', agent: 'planner' },
];

const SIZES = [
  ['1440 px', { width: 1440, height: 900 }],
  ['1280 px', VIEWS.desktop],
  ['a phone', VIEWS.phone],
] as const;

let stage: LifecycleStage;
let browser: RealBrowser;
let page: Page;
let calls: LifecycleOpenCall[] = [];

beforeAll(async () => {
  stage = await startStage({
    upstream: { limit: 100 },
    config: ({ url }) => ({
      upstreams: [{ id: 'practice', base_url: url, dialect: 'openai' }],
      groups: [
        {
          name: 'practice',
          // Every model, so that the model of a call is looked at.
          match: { upstreams: ['practice'], models: ['*'] },
          limits: { max_concurrency: CALLERS.length },
          holds: NO_HOLDS,
          warn_wait_ms: 200,
        },
        { name: LONGEST, match: { upstreams: ['practice'], models: ['none'] } },
      ],
    }),
  });
  browser = await startBrowser();
});

afterEach(async () => {
  for (const opened of calls) opened.leave('FIN');
  calls = [];
  await vi.waitUntil(async () => (await stage.admin.group('practice')).in_use === 0, 15_000);
  await page.context().close();
});

afterAll(async () => {
  await browser.close();
  await stage.close();
});

/** Calls that keep their slots and say nothing more. */
async function holdAll(): Promise<void> {
  for (const { label, model, agent } of CALLERS) call(label, model, agent);
  await Promise.all(calls.map(({ answered }) => answered));
}

function call(label: string, model: string, agent: string): LifecycleOpenCall {
  const opened = openChat(stage.url(), {
    label,
    model,
    headers: {
      'headgate-agent': agent,
      'x-strict-silent-after-chunks': '1',
    },
  });
  calls.push(opened);
  return opened;
}

/** Tells whether a thing can be pressed where it is, without scrolling anything sideways. */
async function isWhollyInView(thing: Locator): Promise<boolean> {
  return thing.evaluate((element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    const hit = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return left >= 0 && right <= innerWidth && element.contains(hit);
  });
}

const region = (name: 'In flight' | 'Queued') =>
  page.getByRole('region', { name: new RegExp(`^${name}`) });
const cells = () =>
  page.getByRole('group', { name: /slots in use/ }).getByRole('button', { name: /^Slot of/ });

it.each(SIZES)(
  'names of 200 letters and of other scripts hide no button, on %s',
  async (_w, view) => {
    await holdAll();
    call('waits', LONG, LONG);
    page = await signedIn(browser, stage, '/admin/groups/practice', view);
    const releases = region('In flight').getByRole('button', { name: /^Release the slot/ });
    await expect.poll(() => releases.count()).toBe(CALLERS.length);
    await region('In flight').scrollIntoViewIfNeeded();
    for (const release of await releases.all()) expect(await isWhollyInView(release)).toBe(true);
    const cancel = region('Queued').getByRole('button', { name: /^Cancel the call/ });
    await cancel.scrollIntoViewIfNeeded();
    expect(await isWhollyInView(cancel)).toBe(true);
    await region('In flight').getByText(HEBREW, { exact: true }).waitFor();
    // What is beside the names is in sight too: nothing has to be scrolled to.
    for (const name of ['In flight', 'Queued'] as const) {
      const beyond = await region(name).evaluate((list) => list.scrollWidth - list.clientWidth);
      expect(beyond).toBeLessThanOrEqual(0);
    }
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
  },
);

it('on a phone three taps lead from the warning to the slot that is taken back', async () => {
  page = await signedIn(browser, stage, '/admin', VIEWS.phone);
  await page.getByText('live', { exact: true }).waitFor();
  await holdAll();
  const next = call('next', 'gpt-5', 'next');
  // Whichever comes first: that a call waits for half a minute, or the warning of a minute that is over.
  await page
    .locator('.looks')
    .getByRole('link', { name: 'practice' })
    .first()
    .click({ timeout: 100_000 });
  await expect.poll(() => cells().count()).toBe(CALLERS.length);
  await expect.poll(() => isWhollyInView(cells().first())).toBe(true);
  await cells().first().click();
  const dialog = page.getByRole('dialog', { name: 'Release this slot?' });
  await expectAccessible(page);
  await dialog.getByRole('button', { name: 'Release' }).click();
  expect(await next.answered).toBe(200);
}, 150_000);

it('on a phone a lease and a waiter are cards of two lines', async () => {
  await holdAll();
  call('waits', 'gpt-5', 'planner');
  page = await signedIn(browser, stage, '/admin/groups/practice', VIEWS.phone);
  for (const name of ['In flight', 'Queued'] as const) {
    const card = region(name).locator('tbody tr', { hasText: 'planner' });
    await card.waitFor();
    const tops = await card.evaluate((row) =>
      ['.whose', '.agent', '.model'].map(
        (part) => row.querySelector(part)?.getBoundingClientRect().top ?? Number.NaN,
      ),
    );
    const [whose = 0, agent = 0, model = 0] = tops;
    expect(agent).toBe(model);
    expect(whose).toBeLessThan(agent);
  }
});

it('who holds and who waits stands right under the picture, and l and w lead there', async () => {
  await holdAll();
  call('waits', 'gpt-5', 'planner');
  page = await signedIn(browser, stage, '/admin/groups/practice');
  await expect.poll(() => cells().count()).toBe(CALLERS.length);
  await page.locator('.charts h3').first().waitFor();
  const tops = await Promise.all(
    [
      page.getByRole('group', { name: /slots in use/ }),
      region('In flight'),
      region('Queued'),
      page.locator('dl.figures'),
      page.locator('.charts'),
      page.locator('.decisions'),
    ].map(async (part) => (await part.boundingBox())?.y ?? Number.NaN),
  );
  expect(tops).toEqual(tops.toSorted((a, b) => a - b));
  const focused = () =>
    page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? '');
  await page.keyboard.press('l');
  expect(await focused()).toMatch(/^Release the slot of/);
  await page.keyboard.press('w');
  expect(await focused()).toMatch(/^(Put|Cancel) the call/);
  await page.keyboard.press('?');
  await page
    .getByRole('dialog', { name: 'Keyboard shortcuts' })
    .getByText('Go to the first lease')
    .waitFor();
  await page.keyboard.press('Escape');
  await cells().first().focus();
  await page.keyboard.press('ArrowRight');
  expect(
    await cells()
      .nth(1)
      .evaluate((cell) => cell === document.activeElement),
  ).toBe(true);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Release this slot?' }).waitFor();
  await page.keyboard.press('Enter');
  await expect.poll(() => cells().count()).toBe(CALLERS.length);
});

it('on a phone every page can be reached, and going offline moves nothing', async () => {
  page = await signedIn(browser, stage, '/admin', VIEWS.phone);
  await page.getByText('live', { exact: true }).waitFor();
  const pages = page.getByRole('navigation', { name: 'Pages' });
  // The hint that there is more, until its end is reached.
  await expect.poll(() => pages.getAttribute('data-more')).toBe('right');
  await pages.evaluate((nav) => nav.scrollTo({ left: nav.scrollWidth }));
  await expect.poll(() => pages.getAttribute('data-more')).toBe('left');
  const last = pages.getByRole('link').last();
  expect(await isWhollyInView(last)).toBe(true);
  const heading = page.getByRole('heading', { level: 1 });
  const before = await heading.boundingBox();
  process.kill(stage.workerdPid(), 'SIGSTOP');
  await page.getByText('offline', { exact: true }).waitFor();
  expect(await heading.boundingBox()).toEqual(before);
  process.kill(stage.workerdPid(), 'SIGCONT');
  await page.getByText('live', { exact: true }).waitFor();
});

it('on a desktop all pages are in sight at once', async () => {
  page = await signedIn(browser, stage, '/admin/config');
  await page.getByText('live', { exact: true }).waitFor();
  const pages = page.getByRole('navigation', { name: 'Pages' });
  expect(await pages.getAttribute('data-more')).toBeNull();
  for (const link of await pages.getByRole('link').all()) {
    expect(await isWhollyInView(link)).toBe(true);
  }
});

it.each(SIZES)(
  'nothing of an upstream is cut off on %s, however long its groups are called',
  async (_w, view) => {
    await holdAll();
    page = await signedIn(browser, stage, '/admin/upstreams', view);
    const row = page.locator('.used > li', {
      has: page.getByRole('heading', { name: 'practice' }),
    });
    await row.getByText(LONGEST).waitFor();
    await row.getByText(/calls today/).waitFor();
    await expectNoSidewaysScroll(page);
    const cut = await row.evaluate((element) =>
      [...element.querySelectorAll('*')]
        .filter((part) => part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 1)
        .map((part) => part.outerHTML.slice(0, 120)),
    );
    expect(cut).toEqual([]);
  },
);

it.each(['', '/edit'])(
  'a group with the longest name fits on a phone: its page%s',
  async (part) => {
    page = await signedIn(browser, stage, `/admin/groups/${LONGEST}${part}`, VIEWS.phone);
    await page.getByRole('heading', { name: LONGEST, level: 1 }).waitFor();
    await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0);
    await expectNoSidewaysScroll(page);
  },
);

it('a change of a group with the longest name fits on a phone', async () => {
  await stage.admin.setLimit(LONGEST, 7);
  page = await signedIn(browser, stage, '/admin/audit', VIEWS.phone);
  await expect.poll(() => page.getByRole('link', { name: LONGEST }).count()).toBeGreaterThan(0);
  await expectNoSidewaysScroll(page);
});

it('names of callers stand apart from what is beside them, wherever they are told', async () => {
  call('hebrew', HEBREW, 'researcher');
  await Promise.all(calls.map(({ answered }) => answered));
  page = await signedIn(browser, stage, '/admin/groups/practice');
  const name = page.getByText(HEBREW, { exact: true });
  // Of the list of leases, and of the list of decisions.
  await expect.poll(() => name.count()).toBeGreaterThan(1);
  for (const one of await name.all()) {
    expect(await one.evaluate((element) => element.closest('bdi') !== null)).toBe(true);
  }
});

it('none of this made the page complain', () => {
  expect(browser.complaints).toEqual([]);
});

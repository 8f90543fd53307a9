import { createHash } from 'node:crypto';
import type { Locator, Page } from 'playwright-core';
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

/** Members in different states: one is full, one partly paused, one ejected, and one has a long name and room. */

const GATEWAY_KEY = 'hg_for-the-picture-of-members';
const FULL = 'full';
const PAUSED = 'paused';
const REVOKED = 'revoked';
/** The name of a member that was given none, from its upstream and its secret. */
const LONG = 'practice:account-of-the-research-team-in-stockholm';

const KEYS = {
  UPSTREAM_FULL: 'sk-full',
  UPSTREAM_PAUSED: 'sk-paused',
  UPSTREAM_REVOKED: 'sk-revoked',
  UPSTREAM_ACCOUNT_OF_THE_RESEARCH_TEAM_IN_STOCKHOLM: 'sk-long',
};

let stage: LifecycleStage;
let browser: RealBrowser;
let page: Page;
const calls: LifecycleOpenCall[] = [];

/** Opens a call that keeps its slot, wherever it is served. */
function hold(): LifecycleOpenCall {
  const call = openChat(stage.url(), { label: `held-${calls.length}`, key: GATEWAY_KEY });
  calls.push(call);
  return call;
}

beforeAll(async () => {
  const at = (secret: string, max: number, rest: object) => ({
    upstream: 'practice',
    secret,
    limits: { max_concurrency: max },
    ...rest,
  });
  stage = await startStage({
    upstream: {
      silentAfterChunks: 1,
      byKey: {
        [KEYS.UPSTREAM_PAUSED]: { status: 429, retryAfterS: 600 },
        [KEYS.UPSTREAM_REVOKED]: { status: 401 },
      },
    },
    env: KEYS,
    config: ({ url }) => ({
      upstreams: [{ id: 'practice', base_url: url, dialect: 'openai' }],
      groups: [
        {
          name: 'practice',
          match: { upstreams: ['practice'] },
          members: [
            at('UPSTREAM_PAUSED', 2, { name: PAUSED }),
            at('UPSTREAM_REVOKED', 3, { name: REVOKED }),
            at('UPSTREAM_FULL', 2, { name: FULL, tier: 2 }),
            at('UPSTREAM_ACCOUNT_OF_THE_RESEARCH_TEAM_IN_STOCKHOLM', 40, { tier: 3 }),
          ],
          affinity: { by: 'none' },
          holds: NO_HOLDS,
        },
      ],
      keys: [
        { id: 'tests', hash: `sha256:${createHash('sha256').update(GATEWAY_KEY).digest('hex')}` },
      ],
    }),
  });
  browser = await startBrowser();
  for (let held = 0; held < 3; held += 1) {
    const status = await hold().answered;
    if (status !== 200) throw new Error(`a call was answered with ${status}`);
  }
});

afterEach(() => page.context().close());

afterAll(async () => {
  for (const call of calls) call.leave('FIN');
  await browser.close();
  await stage.close();
});

const member = (id: string): Locator => page.getByRole('listitem', { name: id, exact: true });

/** Ids of the rows in which something is cut off, or stands beyond the edge of the window. */
const spilling = (): Promise<string[]> =>
  page
    .locator('.members li')
    .evaluateAll((rows) =>
      rows
        .filter((row) =>
          [row, ...row.querySelectorAll('*:not(svg *)')].some(
            (each) =>
              each.scrollWidth > Math.max(each.clientWidth, each.getBoundingClientRect().width) ||
              each.getBoundingClientRect().right > document.documentElement.clientWidth,
          ),
        )
        .map((row) => row.getAttribute('aria-label') ?? ''),
    );

it.each([
  ['a desktop', VIEWS.desktop],
  ['a phone', VIEWS.phone],
])('are told apart, with all of their names, on %s', async (_where, view) => {
  page = await signedIn(browser, stage, '/admin/groups/practice', view);
  for (const [id, slots, state, verb] of [
    [PAUSED, '0 of 2 slots', 'partly paused', 'Disable member'],
    [REVOKED, '0 of 3 slots', 'ejected: key refused', 'Restore member'],
    [FULL, '2 of 2 slots', 'full', 'Disable member'],
    [LONG, '1 of 40 slots', 'flowing', 'Disable member'],
  ] as const) {
    const row = member(id);
    await row.locator('.state').getByText(state, { exact: true }).waitFor();
    await row.getByRole('img', { name: new RegExp(`^${slots}`) }).waitFor();
    await row.getByText(slots, { exact: true }).waitFor();
    // Clicked as far as can be without a click: it is there, nothing covers it, and it does something.
    await row.getByRole('button', { name: `${verb} ${id}` }).click({ trial: true });
  }
  await member(PAUSED)
    .getByText(/^model \S+ for [\d.]+ min more/u)
    .waitFor();
  await member(REVOKED)
    .getByText(/next (call probes it|probe in)/)
    .waitFor();
  await page.getByRole('heading', { name: 'Max in use by member' }).waitFor();
  await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0);
  expect(await spilling()).toEqual([]);
  await expectNoSidewaysScroll(page);
  await expectAccessible(page);
});

it('none of this made the page complain', async () => {
  page = await signedIn(browser, stage);
  expect(browser.complaints).toEqual([]);
});

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LifecycleOpenCall } from '../e2e/support/lifecycle-call.ts';
import { practiceConfig, startStage, type LifecycleStage } from '../e2e/support/lifecycle-stage.ts';
import { RESET_LEASE, resettableWorker } from '../e2e/support/changed-worker.ts';
import {
  expectAccessible,
  expectNoSidewaysScroll,
  startBrowser,
  VIEWS,
  type RealBrowser,
} from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';
import { openSilent } from './support/load.ts';

/** Slots that nobody has claimed since the restart of a pool: those that were handed out ahead, with nine in use. */

const FOLDER = join(tmpdir(), 'headgate-screenshots');

const HELD = 9;

let stage: LifecycleStage;
let browser: RealBrowser;
let calls: LifecycleOpenCall[] = [];

beforeAll(async () => {
  browser = await startBrowser();
  stage = await startStage({ config: practiceConfig(20), module: resettableWorker });
  calls = Array.from({ length: HELD }, (_, index) => openSilent(stage, `held-${index}`));
  await Promise.all(calls.map((call) => call.answered));
});

afterAll(async () => {
  for (const call of calls) call.leave('FIN');
  await stage.close();
  await browser.close();
});

it.each(['desktop', 'phone'] as const)('are told apart on a %s, and until when', async (view) => {
  await stage.admin.request('DELETE', `/groups/practice/leases/${RESET_LEASE}`);
  const page = await signedIn(browser, stage, '/admin/groups/practice', VIEWS[view]);
  const legend = page.getByText(
    /^\s*\d+ orphaned: granted before the last restart of this pool; free by \d\d:\d\d:\d\d unless its call reclaims it$/,
  );
  await legend.waitFor();
  const picture = page.getByRole('group', { name: /slots in use/ });
  await expect
    .poll(() => picture.getAttribute('aria-label'))
    .toMatch(/^9 of 20 slots in use, [1-9]\d* orphaned, no queued calls\.$/);
  const cells = picture.locator('.orphaned');
  const [, orphaned = ''] = /^\s*(\d+) /.exec((await legend.textContent()) ?? '') ?? [];
  expect(await cells.count()).toBe(Number(orphaned));
  expect(await cells.first().getAttribute('title')).toMatch(/^orphaned: granted before/);
  await expectAccessible(page);
  await expectNoSidewaysScroll(page);
  await page.screenshot({ path: join(FOLDER, `unclaimed-${view}.png`), fullPage: true });

  await page.goto(`${stage.url()}/admin`);
  const card = page.getByRole('img', { name: /^9 of 20 slots in use, [1-9]\d* orphaned/ });
  await card.waitFor();
  expect(await card.locator('path.orphaned').count()).toBe(1);
  await page.screenshot({ path: join(FOLDER, `unclaimed-overview-${view}.png`), fullPage: true });
  await page.context().close();
  expect(browser.complaints).toEqual([]);
});

import { afterAll, beforeAll } from 'vitest';
import {
  practiceConfig,
  startStage,
  type LifecycleStage,
} from '../../e2e/support/lifecycle-stage.ts';
import { startBrowser, type RealBrowser } from './chromium.ts';

/** A Headgate with one group `practice` of three slots, for all tests of the file that imports it. */
export let stage: LifecycleStage;

/** The browser of these tests. */
export let browser: RealBrowser;

beforeAll(async () => {
  stage = await startStage({
    config: (upstream) => ({ ...(practiceConfig(3)(upstream) as object), leases: 'open' }),
  });
  browser = await startBrowser();
});

afterAll(async () => {
  await browser.close();
  await stage.close();
});

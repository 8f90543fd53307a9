import type { Page } from 'playwright-core';
import { STAGE_TOKEN, type LifecycleStage } from '../../e2e/support/lifecycle-stage.ts';
import type { RealBrowser, View } from './chromium.ts';

/** Opens a page of the dashboard as the operator who has just signed in. */
export function signedIn(
  browser: RealBrowser,
  stage: LifecycleStage,
  path?: string,
  view?: View,
): Promise<Page> {
  return signedInAs(browser, stage, STAGE_TOKEN, path, view);
}

/** Opens a page of the dashboard as whoever has that token. */
export async function signedInAs(
  browser: RealBrowser,
  stage: LifecycleStage,
  token: string,
  path = '/admin',
  view: View = {},
): Promise<Page> {
  const page = await browser.open(view);
  await page.goto(`${stage.url()}${path}`);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  return page;
}

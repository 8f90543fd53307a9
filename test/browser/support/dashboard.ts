import type { Page } from 'playwright-core';
import { STAGE_TOKEN, type Stage } from '../../e2e/support/lifecycle-stage.ts';
import type { RealBrowser, View } from './chromium.ts';

/** Opens a page of the dashboard as somebody who has just signed in. */
export async function signedIn(
  browser: RealBrowser,
  stage: Stage,
  path = '/admin',
  view: View = {},
): Promise<Page> {
  const page = await browser.open(view);
  await page.goto(`${stage.url()}${path}`);
  await page.getByLabel('Token').fill(STAGE_TOKEN);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  return page;
}

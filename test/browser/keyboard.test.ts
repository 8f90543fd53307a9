import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { STAGE_TOKEN } from '../e2e/support/lifecycle-stage.ts';
import { browser, stage } from './support/practice-stage.ts';

/** From the sign-in page to a pause and back, without a mouse. */

/** Presses Tab until the control with that role and name has the focus. */
async function tabTo(page: Page, role: 'link' | 'button', name: string): Promise<void> {
  const control = page.getByRole(role, { name, exact: true }).first();
  for (let presses = 0; presses < 60; presses += 1) {
    if (await control.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not reach the ${role} ${name}.`);
}

it('everything that an operator needs in a hurry is done with keys', async () => {
  const page = await browser.open();
  await page.goto(`${stage.url()}/admin`);
  // The field has the focus already.
  await page.getByLabel('Token').waitFor();
  await page.keyboard.type(STAGE_TOKEN);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Groups', exact: true }).waitFor();

  // A key that is pressed before the page listens is lost.
  const keys = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await expect
    .poll(async () => {
      if (!(await keys.isVisible())) await page.keyboard.press('?');
      return keys.isVisible();
    })
    .toBe(true);
  await page.keyboard.press('Escape');

  await page.getByRole('article').first().waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('pract');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Calls', level: 1 }).waitFor();
  await tabTo(page, 'link', 'practice');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'practice', level: 1 }).waitFor();

  await tabTo(page, 'button', 'Pause');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Pause practice?' });
  await dialog.waitFor();
  // Whoever presses Enter without reading has done nothing.
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'hidden' });
  expect(await stage.admin.group('practice')).toMatchObject({ paused: false });
  await tabTo(page, 'button', 'Pause');
  await page.keyboard.press('Enter');
  await dialog.waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect.poll(async () => stage.admin.group('practice')).toMatchObject({ paused: true });

  await tabTo(page, 'button', 'Resume');
  await page.keyboard.press('Enter');
  await expect.poll(async () => stage.admin.group('practice')).toMatchObject({ paused: false });

  await page.keyboard.press('g');
  await page.keyboard.press('a');
  await page.getByRole('heading', { name: 'Audit' }).waitFor();
});

import { expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { STAGE_TOKEN } from '../e2e/support/lifecycle-stage.ts';
import { expectAccessible } from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';
import { browser, stage } from './support/practice-stage.ts';

/** Somebody types, and is interrupted: what was typed is still there. */

/** The form of the group `practice` with a number typed that is not applied. */
async function withTypedLimit() {
  const page = await signedIn(browser, stage, '/admin/groups/practice');
  await page.getByRole('link', { name: 'Edit' }).click();
  await limitOf(page).fill('7');
  await page.getByRole('button', { name: 'Discard' }).and(page.locator(':enabled')).waitFor();
  return page;
}

const limitOf = (page: Page) => page.getByLabel('Max concurrency', { exact: true });

it('a link, the keyboard and going back ask before what was typed is lost', async () => {
  const page = await withTypedLimit();
  const question = page.getByRole('dialog', { name: 'Leave without saving?' });
  const ways = [
    () => page.getByRole('link', { name: 'Audit' }).click(),
    async () => {
      await page.getByRole('heading', { level: 1 }).click();
      await page.keyboard.press('g');
      await page.keyboard.press('a');
    },
    () => page.goBack(),
  ];
  for (const leave of ways) {
    await leave();
    await question.waitFor();
    await page.keyboard.press('Escape');
    await question.waitFor({ state: 'hidden' });
    expect(await limitOf(page).inputValue()).toBe('7');
    expect(new URL(page.url()).pathname).toBe('/admin/groups/practice/edit');
  }
  await page.getByRole('link', { name: 'Audit' }).click();
  await question.getByRole('button', { name: 'Leave' }).click();
  await page.getByRole('heading', { name: 'Audit', level: 1 }).waitFor();
});

it('a link asks before a pasted configuration is lost', async () => {
  const page = await signedIn(browser, stage, '/admin/config');
  const pasted = page.getByRole('textbox', { name: 'Configuration' });
  await pasted.fill('groups: []');
  await page.getByRole('link', { name: 'Audit' }).click();
  const question = page.getByRole('dialog', { name: 'Leave without saving?' });
  await question.waitFor();
  await page.keyboard.press('Escape');
  await question.waitFor({ state: 'hidden' });
  expect(await pasted.inputValue()).toBe('groups: []');
});

it('a session that ends while somebody types asks for the token, and goes on with what was typed', async () => {
  const page = await withTypedLimit();
  await page.context().clearCookies();
  await page.getByRole('button', { name: 'Review change' }).click();
  const ended = page.getByRole('dialog', { name: 'Your session has ended' });
  await ended.waitFor();
  await expectAccessible(page);
  await ended.getByLabel('Token').fill(STAGE_TOKEN);
  await page.keyboard.press('Enter');
  await ended.waitFor({ state: 'hidden' });
  expect(await limitOf(page).inputValue()).toBe('7');
  await page.getByRole('button', { name: 'Review change' }).click();
  await page.getByRole('button', { name: 'Apply change' }).click();
  await expect
    .poll(async () => stage.admin.group('practice'))
    .toMatchObject({ limit: { configured: 7 } });
});

it('an address that cannot be read fails alone, and leads back', async () => {
  const page = await signedIn(browser, stage, '/admin/groups/%E0%A4');
  await page.getByRole('heading', { name: 'This page failed' }).waitFor();
  await page.getByRole('link', { name: 'All groups' }).click();
  await page.getByRole('heading', { name: 'Groups', level: 1 }).waitFor();
  expect(await page.getByRole('heading', { name: 'This page failed' }).count()).toBe(0);
});

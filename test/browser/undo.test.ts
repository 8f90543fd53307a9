import type { Page } from 'playwright-core';
import { afterEach, expect, it } from 'vitest';
import { expectAccessible, expectNoSidewaysScroll } from './support/chromium.ts';
import { signedIn, signedInAs } from './support/dashboard.ts';
import { browser, stage } from './support/practice-stage.ts';

/** Ways back that an operator has in a browser: one change, a version, a change that ends by itself. */

let page: Page;

afterEach(() => page.context().close());

interface UndoChanged {
  readonly version: number;
  readonly group: {
    readonly limits: { readonly max_concurrency: number };
    readonly paused: boolean;
  };
}

const ask = async (method: string, path: string, body?: object): Promise<UndoChanged> => {
  const response = await stage.admin.request(method, path, body);
  expect(response.status).toBe(200);
  return (await response.json()) as UndoChanged;
};
const limit = (max_concurrency: number) =>
  ask('PATCH', '/groups/practice', { limits: { max_concurrency } });
const groupNow = async () =>
  (await ask('GET', '/groups/practice')) as unknown as UndoChanged['group'];

/** Clicks on a button, and counts. */
function clicker() {
  let clicks = 0;
  return {
    count: () => clicks,
    on: async (name: string | RegExp, role: 'button' | 'link' = 'button') => {
      clicks += 1;
      await page.getByRole(role, { name, exact: true }).first().click();
    },
  };
}

it('a bad change is undone in three clicks from the first page, after a look at what that does', async () => {
  await limit(5);
  const bad = await limit(9);
  await ask('PATCH', '/groups/practice', { limits: { rpm: 6_000 } });
  page = await signedIn(browser, stage, '/admin');
  const click = clicker();
  await click.on('Audit', 'link');
  await page.getByRole('heading', { name: 'Audit' }).waitFor();
  await expectNoSidewaysScroll(page);
  await click.on(new RegExp(`^Undo this change: version ${bad.version},`));
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Changes: 1 changed').waitFor();
  expect(await dialog.textContent()).toMatch(/limits\.max_concurrency.*9.*5/);
  const effect = dialog.getByRole('region', { name: 'What this does now in practice' });
  expect(await effect.textContent()).toMatch(
    /Slots now9.*Slots after5.*No call in flight is interrupted/,
  );
  await expectAccessible(page);
  await click.on('Undo this change');
  await expect
    .poll(async () => (await groupNow()).limits)
    .toMatchObject({ max_concurrency: 5, rpm: 6_000 });
  expect(click.count()).toBeLessThanOrEqual(5);
});

it('a field that was changed since is shown, and goes back only where that is wanted', async () => {
  await limit(5);
  const bad = await limit(9);
  await limit(7);
  page = await signedIn(browser, stage, '/admin/audit');
  const click = clicker();
  await click.on(new RegExp(`^Undo this change: version ${bad.version},`));
  const dialog = page.getByRole('dialog');
  await dialog.getByText('No changes').waitFor();
  expect(await dialog.textContent()).toContain('Changed again since');
  expect(await dialog.textContent()).toContain('now 7, previously 5');
  await dialog.getByLabel('Revert these too').check();
  await dialog.getByText('Changes: 1 changed').waitFor();
  await expectAccessible(page);
  await click.on('Undo this change');
  await expect.poll(async () => (await groupNow()).limits.max_concurrency).toBe(5);
});

it('a version is restored, and a change that came meanwhile is looked at first', async () => {
  const then = await limit(5);
  await limit(9);
  await ask('POST', '/groups/practice/pause');
  page = await signedIn(browser, stage, '/admin/audit');
  const click = clicker();
  await click.on(new RegExp(`^Restore this version: version ${then.version},`));
  const dialog = page.getByRole('dialog');
  await dialog.getByText('paused').waitFor();
  await ask('PATCH', '/groups/practice', { warn_at: 0.5 });
  await click.on('Restore this version');
  await dialog.getByText('Review the changes again').waitFor();
  expect((await groupNow()).paused).toBe(true);
  await click.on('Restore this version');
  await expect.poll(groupNow).toMatchObject({ paused: false, limits: { max_concurrency: 5 } });
  await dialog.waitFor({ state: 'hidden' });
  expect(click.count()).toBeLessThanOrEqual(5);
});

it('a limit is raised for an hour, the page says until when, and it can go back at once', async () => {
  await limit(5);
  page = await signedIn(browser, stage, '/admin/groups/practice/edit');
  await page.getByLabel('Max concurrency', { exact: true }).fill('8');
  await page.getByRole('button', { name: 'Review change' }).click();
  await page.getByLabel('Duration', { exact: true }).selectOption({ label: 'for 1 hour' });
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Apply change' }).click();
  const chips = page.getByRole('list', { name: 'Temporary changes' });
  await expect.poll(() => chips.textContent()).toMatch(/limits\.max_concurrency 8 until .*then 5/);
  expect(await groupNow()).toMatchObject({ limits: { max_concurrency: 8 } });
  await expectAccessible(page);
  await expectNoSidewaysScroll(page);
  await page.getByRole('button', { name: 'Revert now' }).click();
  await chips.waitFor({ state: 'hidden' });
  expect(await groupNow()).toMatchObject({ limits: { max_concurrency: 5 } });
});

it('a pause with an end is set in four clicks, says its end everywhere, and is resumed before', async () => {
  page = await signedIn(browser, stage, '/admin/groups/practice');
  const click = clicker();
  await click.on('Pause until…');
  await page.getByLabel('Duration', { exact: true }).selectOption({ label: 'until…' });
  const pause = page.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true });
  await page.getByLabel(/^Until \(/).fill('2020-01-01T00:00');
  expect(await pause.isDisabled()).toBe(true);
  await page.getByLabel('Duration', { exact: true }).selectOption({ label: 'for 15 minutes' });
  await expectAccessible(page);
  await pause.click();
  await page.getByText(/^paused until (\d+ \w+, )?\d\d:\d\d/).waitFor();
  expect((await groupNow()).paused).toBe(true);
  await click.on('Resume');
  await expect.poll(async () => (await groupNow()).paused).toBe(false);
  expect(click.count() + 2).toBeLessThanOrEqual(5);
});

it('a viewer sees who changed what, and no way back', async () => {
  await limit(6);
  const made = await stage.admin.request('POST', '/admin-keys', { id: 'looks', role: 'viewer' });
  const { secret } = (await made.json()) as { secret: string };
  page = await signedInAs(browser, stage, secret, '/admin/audit');
  await page.getByText('limits.max_concurrency').first().waitFor();
  expect(await page.getByRole('button', { name: /^(Undo|Restore)/ }).count()).toBe(0);
});

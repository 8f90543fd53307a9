import type { Page } from 'playwright-core';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { expectAccessible, expectNoSidewaysScroll, VIEWS } from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';
import { browser, stage } from './support/practice-stage.ts';

/** Members of a group on its page: how each stands, taken out and brought back. */

let page: Page;

beforeAll(async () => {
  const { status } = await stage.admin.request('PATCH', '/groups/practice', {
    limits: { max_concurrency: null },
    members: [
      { name: 'first', upstream: 'practice', limits: { max_concurrency: 2 } },
      {
        name: 'second',
        upstream: 'practice',
        secret: 'UPSTREAM_SECOND',
        limits: { max_concurrency: 3 },
        tier: 2,
      },
    ],
  });
  if (status !== 200) throw new Error(`the members were answered with ${status}`);
});

afterEach(() => page.context().close());

const member = (id: string) => page.getByRole('listitem', { name: id, exact: true });

const isEnabled = async (id: string): Promise<boolean | undefined> => {
  const answer = await stage.admin.request('GET', '/groups/practice/status');
  const { members } = (await answer.json()) as { members: { id: string; enabled: boolean }[] };
  return members.find((each) => each.id === id)?.enabled;
};

it.each([
  ['a desktop', VIEWS.desktop],
  ['a phone', VIEWS.phone],
])('are taken out and brought back, on %s', async (_where, view) => {
  page = await signedIn(browser, stage, '/admin/groups/practice', view);
  await member('first')
    .getByRole('img', { name: /^0 of 2 slots in use/ })
    .waitFor();
  await member('second').getByText('tier 2').waitFor();
  await member('first').getByText('idle', { exact: true }).waitFor();

  await member('first').getByRole('button', { name: 'Disable member first' }).click();
  const dialog = page.getByRole('dialog', { name: 'Disable first?' });
  await dialog.getByText('Queued calls go to the other members').waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  expect(await isEnabled('first')).toBe(true);

  await member('first').getByRole('button', { name: 'Disable member first' }).click();
  await dialog.getByRole('button', { name: 'Disable member' }).click();
  await member('first').getByText('disabled', { exact: true }).waitFor();
  expect(await isEnabled('first')).toBe(false);
  await member('second').getByText('idle', { exact: true }).waitFor();

  const back = member('first').getByRole('button', { name: 'Restore member first' });
  await expectNoSidewaysScroll(page);
  await expectAccessible(page);
  await back.click();
  await page
    .getByRole('dialog', { name: 'Restore first?' })
    .getByRole('button', { name: 'Restore member' })
    .click();
  await member('first').getByText('idle', { exact: true }).waitFor();
  expect(await isEnabled('first')).toBe(true);
});

it('none of this made the page complain', async () => {
  page = await signedIn(browser, stage);
  expect(browser.complaints).toEqual([]);
});

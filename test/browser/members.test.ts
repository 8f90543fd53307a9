import type { Page } from 'playwright-core';
import { afterEach, expect, it } from 'vitest';
import { signedIn } from './support/dashboard.ts';
import { browser, stage } from './support/practice-stage.ts';

/** Members of a group in the form: added, edited, put into another order, removed, refused where they are wrong. */

let page: Page;

afterEach(() => page.context().close());

const group = async () =>
  (await (await stage.admin.request('GET', '/groups/practice')).json()) as Record<string, unknown>;

async function openForm(): Promise<void> {
  page = await signedIn(browser, stage, '/admin/groups/practice/edit');
  const title = page.getByRole('heading', { name: 'Members', exact: true });
  await title.waitFor();
  const add = page.getByRole('button', { name: 'Add member' });
  if (!(await add.isVisible())) await title.click();
}

const member = (number: number) =>
  page.getByRole('group', { name: `Member ${number}`, exact: true });

async function apply(): Promise<void> {
  await page.getByRole('button', { name: 'Review change' }).click();
  await page.getByRole('button', { name: 'Apply change' }).click();
}

it('are added, and say what the configuration says of them', async () => {
  await openForm();
  await page.getByRole('button', { name: 'Add member' }).click();
  await member(1).getByRole('combobox', { name: 'Upstream' }).selectOption('openai');
  await member(1).getByLabel('Secret').fill('UPSTREAM_TEAM_A');
  await member(1).getByLabel('Slots').fill('4');
  await member(1).getByText('Name, models, rates and budgets').click();
  await member(1).getByRole('button', { name: 'Add model' }).click();
  await member(1).getByRole('textbox', { name: 'Model 1' }).fill('gpt-4o');
  await member(1).getByRole('textbox', { name: 'Name at the upstream 1' }).fill('eu-1');
  await page.getByRole('button', { name: 'Add member' }).click();
  // It begins where the one before is, under another key.
  await member(2).getByLabel('Secret').fill('UPSTREAM_TEAM_B');
  await member(2).getByLabel('Tier').fill('2');
  expect(await member(2).getByRole('heading').textContent()).toBe('openai:team-b');
  await page.getByRole('group', { name: 'Affinity' }).getByLabel('Affinity duration').fill('90s');
  expect(await member(1).textContent()).toContain('Empty means that of the upstream');
  await apply();
  await expect.poll(group).toMatchObject({
    members: [
      {
        upstream: 'openai',
        secret: 'UPSTREAM_TEAM_A',
        models: { 'gpt-4o': 'eu-1' },
        limits: { max_concurrency: 4 },
        tier: 1,
      },
      { upstream: 'openai', secret: 'UPSTREAM_TEAM_B', models: {}, tier: 2 },
    ],
    affinity: { by: 'agent', for: '90s', wait: '2s' },
  });
});

it('change places and are removed', async () => {
  await openForm();
  await member(2).waitFor();
  await page.getByRole('button', { name: 'Move member 2 up' }).click();
  expect(await member(1).getByLabel('Secret').inputValue()).toBe('UPSTREAM_TEAM_B');
  expect(await page.getByRole('button', { name: 'Move member 2 down' }).isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'Remove member 2' }).click();
  await member(1).getByLabel('Enabled').uncheck();
  await apply();
  await expect
    .poll(async () => (await group())['members'])
    .toMatchObject([{ secret: 'UPSTREAM_TEAM_B', tier: 2, enabled: false }]);
});

it('that are wrong say so at their own fields, before and after the server has looked', async () => {
  await openForm();
  const tier = member(1).getByLabel('Tier');
  await tier.fill('11');
  await expect.poll(() => tier.getAttribute('aria-invalid')).toBe('true');
  expect(await member(1).textContent()).toContain('expected at most 10, got 11');
  await tier.fill('1');
  await page.getByRole('button', { name: 'Add member' }).click();
  const secret = member(2).getByLabel('Secret');
  await secret.fill('UPSTREAM_TEAM_B');
  await page.getByRole('button', { name: 'Review change' }).click();
  await expect.poll(() => secret.getAttribute('aria-invalid')).toBe('true');
  expect(await member(2).textContent()).toContain('is the same as members[0]');
});

it('none of this made the page complain', () => {
  expect(browser.complaints).toEqual([]);
});

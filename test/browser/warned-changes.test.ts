import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { NO_HOLDS, startStage, type LifecycleStage } from '../e2e/support/lifecycle-stage.ts';
import { until } from '../e2e/support/lifecycle-wait.ts';
import { expectAccessible, startBrowser, type RealBrowser } from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';

/** Changes that would refuse calls of the last hour, by an operator in a browser: the first click warns, the second one makes them. */

let stage: LifecycleStage;
let browser: RealBrowser;
let page: Page;

const CALLS = 2;
const FREE = { input: 0, output: 0 };
const COUNT_AS_FREE = 'Count calls without a price as free';

beforeAll(async () => {
  stage = await startStage({
    upstream: { limit: 10 },
    config: ({ url }) => ({
      upstreams: [
        {
          id: 'practice',
          base_url: url,
          dialect: 'openai',
          prices: { priced: { input: 1, output: 1 } },
        },
      ],
      groups: [
        {
          name: 'practice',
          match: { upstreams: ['practice'] },
          holds: NO_HOLDS,
          track_usage: 'always',
        },
      ],
      // It warns of this at each change, also of those that have nothing to do with it.
      leases: 'open',
    }),
  });
  browser = await startBrowser();
  const made = await stage.admin.request('POST', '/keys', { id: 'ci', team: 'apps' });
  await stage.admin.request('POST', '/keys', { id: 'other' });
  const { secret } = (await made.json()) as { secret: string };
  let served = 0;
  await until('the calls are served', async () => {
    const answer = await fetch(`${stage.url()}/practice/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'headgate-key': secret },
      body: JSON.stringify({
        model: 'unpriced',
        messages: [{ role: 'user', content: 'hello' }],
      }),
    });
    await answer.text();
    // Workers hear of a new key within seconds.
    if (answer.status === 200) served += 1;
    return served === CALLS;
  });
  await until('they are counted', async () => (await refusedByRevoking('ci')) === CALLS);
});

afterAll(async () => {
  await browser.close();
  await stage.close();
});

afterEach(() => page.context().close());

async function refusedByRevoking(id: string): Promise<number> {
  const answer = await stage.admin.request('POST', `/keys/${id}/preview?as=revoke`);
  const { refuses } = (await answer.json()) as { refuses: { refused: { calls: number }[] } };
  return refuses.refused[0]?.calls ?? 0;
}

const limitsOf = async (path: string): Promise<unknown> =>
  ((await (await stage.admin.request('GET', path)).json()) as { limits: object }).limits;

const budget = (perDay: number | null, fallback: object | null) => ({
  budget_usd: { per_day: perDay, fallback_price: fallback },
});

const dialog = () => page.getByRole('dialog');
const press = (name: string) => dialog().getByRole('button', { name, exact: true }).click();
const warning = () => dialog().getByRole('alert').getByText('This change rejects calls that pass');
const type = (label: string, text: string) =>
  dialog().getByLabel(label, { exact: true }).fill(text);

it.each([
  { what: 'key', edit: 'Edit ci', path: '/keys/ci', subject: 'The key `ci`' },
  { what: 'team', edit: 'Edit team apps', path: '/teams/apps', subject: 'The team `apps`' },
])(
  'a budget of a $what names the calls that it would refuse, and counts them as free if asked to',
  async ({ what, edit, path, subject }) => {
    page = await signedIn(browser, stage, '/admin/keys');
    await page.getByRole('button', { name: edit, exact: true }).click();
    await type('Budget per day', '5');
    await press(`Save ${what}`);
    await warning().waitFor();
    expect(await warning().textContent()).toMatch(
      new RegExp(`: ${CALLS} of \\d+ calls of the last hour\\. ${subject} has a budget`),
    );
    // A warning that holds anyway is none of this change.
    expect(await dialog().getByRole('alert').first().textContent()).not.toContain('leases: open');
    expect(await limitsOf(path)).toMatchObject(budget(null, null));
    await expectAccessible(page);

    // Another change is a question of its own.
    await type('Budget per day', '6');
    await expect.poll(() => warning().count()).toBe(0);
    await press(`Save ${what}`);
    await warning().waitFor();
    await press(COUNT_AS_FREE);
    await expect.poll(() => warning().count()).toBe(0);
    expect(await limitsOf(path)).toMatchObject(budget(null, null));
    await press(`Save ${what}`);
    await expect.poll(() => limitsOf(path)).toMatchObject(budget(6, FREE));
    await expect.poll(() => dialog().count()).toBe(0);
  },
);

it('a change that has no warnings takes one click', async () => {
  page = await signedIn(browser, stage, '/admin/keys');
  await page.getByRole('button', { name: 'Edit other', exact: true }).click();
  await type('Max concurrency', '3');
  await press('Save key');
  await expect.poll(() => limitsOf('/keys/other')).toMatchObject({ max_concurrency: 3 });
});

it('a second click makes the change that the first one warned of', async () => {
  const patch = { limits: { budget_usd: { per_day: null, fallback_price: null } } };
  await stage.admin.request('PATCH', '/keys/ci', patch);
  page = await signedIn(browser, stage, '/admin/keys');
  await page.getByRole('button', { name: 'Edit ci', exact: true }).click();
  await type('Budget per day', '5');
  // The warning comes into sight, wherever the form was scrolled to.
  await dialog().getByLabel('Note', { exact: true }).scrollIntoViewIfNeeded();
  await press('Save key');
  await expect
    .poll(() =>
      warning().evaluate((element) => {
        const { top, bottom } = element.getBoundingClientRect();
        return top > 0 && bottom < innerHeight;
      }),
    )
    .toBe(true);
  await press('Save key anyway');
  await expect.poll(() => limitsOf('/keys/ci')).toMatchObject(budget(5, null));
  await stage.admin.request('PATCH', '/keys/ci', patch);
});

it('the review of a group counts calls without a price as free in the same step', async () => {
  page = await signedIn(browser, stage, '/admin/groups/practice/edit');
  await page.getByLabel('Budget per day', { exact: true }).fill('5');
  await page.getByRole('button', { name: 'Review change' }).click();
  const warnings = dialog().getByRole('region', { name: 'Warnings' });
  await warnings.getByText('This change rejects calls that pass today').waitFor();
  expect(await warnings.textContent()).toContain('The group `practice` has a budget');
  await press(COUNT_AS_FREE);
  await expect.poll(() => warnings.getByText('This change rejects').count()).toBe(0);
  await dialog().getByText('fallback_price').first().waitFor();
  await press('Apply change');
  await expect.poll(() => limitsOf('/groups/practice')).toMatchObject(budget(5, FREE));
});

it('rotating a key without a grace period asks first, and with one it does not', async () => {
  page = await signedIn(browser, stage, '/admin/keys');
  await page.getByRole('button', { name: 'Rotate ci', exact: true }).click();
  await dialog().getByLabel('Grace period of the previous key').selectOption({ label: 'none' });
  await press('Rotate key');
  await warning().waitFor();
  await dialog().getByRole('button', { name: 'Rotate key anyway' }).waitFor();
  await dialog().getByLabel('Grace period of the previous key').selectOption({ label: '1 day' });
  await expect.poll(() => warning().count()).toBe(0);
  await press('Rotate key');
  await page.getByLabel('Secret', { exact: true }).waitFor();
});

it('revoking a key says how many calls of the last hour that refuses', async () => {
  page = await signedIn(browser, stage, '/admin/keys');
  await page.getByRole('button', { name: 'Revoke ci', exact: true }).click();
  await dialog().getByText(`(\`key_invalid\`): \`ci\` (${CALLS})`).waitFor();
  await press('Cancel');
  await page.getByRole('button', { name: 'Revoke other', exact: true }).click();
  await dialog().getByText('New calls are rejected within 5 seconds').waitFor();
  expect(await dialog().textContent()).not.toContain('key_invalid');
});

it('none of this made the page complain', () => {
  expect(browser.complaints).toEqual([]);
});

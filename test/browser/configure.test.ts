import type { Page } from 'playwright-core';
import { afterEach, expect, it } from 'vitest';
import { openChat } from '../e2e/support/lifecycle-call.ts';
import { signedIn, signedInAs } from './support/dashboard.ts';
import { browser, stage } from './support/practice-stage.ts';

/** Changes of the configuration by operators in a browser, and every word that helps when it is wrong. */

let page: Page;

afterEach(() => page.context().close());

const config = async () =>
  (await (await stage.admin.request('GET', '/config')).json()) as {
    groups: { name: string }[];
    upstreams: object[];
  };

it('the example configuration is imported after a look at what it changes', async () => {
  page = await signedIn(browser, stage, '/admin/config');
  await page.getByLabel('Example', { exact: true }).selectOption({ label: 'Two groups' });
  await page.getByRole('button', { name: 'Review changes' }).click();
  await page.getByText('openai-shared').first().waitFor();
  await page.getByRole('button', { name: 'Apply import' }).waitFor();
  expect((await config()).groups.map(({ name }) => name)).toEqual(['practice']);
  // What it takes away is told too, before anybody agrees to it.
  expect(await page.getByRole('main').textContent()).toContain('practice');
  const before = await config();
  await page.getByRole('button', { name: 'Apply import' }).click();
  await expect
    .poll(async () => (await config()).groups.map(({ name }) => name))
    .toEqual(['openai-shared', 'anthropic-batch']);
  expect((await stage.admin.request('PUT', '/config', before)).status).toBe(200);
});

it('a text that is no configuration is refused with its line or its field', async () => {
  page = await signedIn(browser, stage, '/admin/config');
  const text = page.getByLabel('Configuration', { exact: true });
  const check = page.getByRole('button', { name: 'Review changes' });
  await text.fill('groups:\n  - name: [unclosed\n');
  await check.click();
  await expect
    .poll(() => page.getByRole('alert').allTextContents())
    .toContainEqual(expect.stringMatching(/line \d/i));
  await text.fill('groups:\n  - name: a\n    limits: { max_concurrency: -1 }\n');
  await check.click();
  await expect.poll(() => page.getByRole('main').textContent()).toContain('max_concurrency');
  expect((await config()).groups.map(({ name }) => name)).toEqual(['practice']);
});

const COUNTED_TOGETHER = /counts calls with callers' own provider keys for `practice` together/;

it('an import and a new group that count own keys together warn before they apply', async () => {
  const before = await config();
  const together = { name: 'together', match: { upstreams: ['practice'] } };
  page = await signedIn(browser, stage, '/admin/config');
  const document = { ...before, groups: [...before.groups, together] };
  await page.getByLabel('Configuration', { exact: true }).fill(JSON.stringify(document));
  await page.getByRole('button', { name: 'Review changes' }).click();
  await page.getByRole('list', { name: 'Warnings' }).getByText(COUNTED_TOGETHER).waitFor();
  await page.context().close();

  page = await signedIn(browser, stage, '/admin/new');
  await page.getByRole('button', { name: 'YAML' }).click();
  await page.getByLabel('The group as YAML or JSON').fill(JSON.stringify(together));
  await page.getByRole('button', { name: 'Review change' }).click();
  await page.getByRole('region', { name: 'Warnings' }).getByText(COUNTED_TOGETHER).waitFor();
  expect((await config()).groups.map(({ name }) => name)).toEqual(['practice']);
});

it('an upstream whose secret is not set is what the first page shows first', async () => {
  const before = await config();
  const sealed = {
    id: 'sealed',
    base_url: 'https://llm.example.com',
    auth: { secret: 'UPSTREAM_NOT_SET' },
  };
  const document = { ...before, upstreams: [...before.upstreams, sealed] };
  expect((await stage.admin.request('PUT', '/config', document)).status).toBe(200);
  page = await signedIn(browser, stage, '/admin');
  const first = page
    .getByRole('region', { name: /Needs attention/ })
    .getByRole('listitem')
    .first();
  await expect
    .poll(() => first.textContent())
    .toBe('sealedSecret `UPSTREAM_NOT_SET` is not set, so calls to this upstream are rejected.');
  expect((await stage.admin.request('PUT', '/config', before)).status).toBe(200);
});

it('the form of an upstream says of a field what the configuration says of it', async () => {
  page = await signedIn(browser, stage, '/admin/upstreams');
  await page.getByRole('button', { name: 'Add upstream' }).click();
  await page.getByText('More', { exact: true }).click();
  const help = page.locator('#upstream-via-help');
  await expect.poll(() => help.textContent()).toContain('Empty means the public network.');
});

it('a key is made, shown once, opens, and opens no more once it is revoked', async () => {
  const before = await config();
  page = await signedIn(browser, stage, '/admin/keys');
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByLabel('Id', { exact: true }).fill('team-blue');
  await page.getByRole('button', { name: 'Create key' }).click();
  const shown = page.getByLabel('Secret', { exact: true });
  // Calls of the tests before had no key.
  const sure = page.getByRole('button', { name: 'Create key anyway' });
  await shown.or(sure).first().waitFor();
  if ((await sure.count()) > 0) await sure.click();
  const secret = await shown.inputValue();
  expect(secret).toMatch(/^hg_/);
  await page.getByRole('button', { name: 'Done' }).click();
  const everything = (): Promise<string> =>
    page.evaluate(
      () =>
        document.documentElement.outerHTML +
        JSON.stringify([localStorage, sessionStorage, location.href]),
    );
  // A dialog tells of its end in a task of its own.
  await expect.poll(everything).not.toContain(secret);
  const status = async (): Promise<number> =>
    openChat(stage.url(), { label: 'key', key: secret }).answered;
  await expect.poll(status).toBe(200);
  await page.getByRole('button', { name: 'Revoke team-blue' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke key' }).click();
  await expect.poll(status).toBe(401);
  await page.getByRole('button', { name: 'Delete team-blue' }).click();
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /delete/i })
    .click();
  // Without any key callers would need none: that is said, and left for somebody to decide.
  await page.getByText('is the only key').waitFor();
  expect((await stage.admin.request('PUT', '/config', before)).status).toBe(200);
  await expect.poll(() => page.getByRole('button', { name: 'Delete team-blue' }).count()).toBe(0);
});

it.each([
  { label: 'Max concurrency', value: '-1', says: /0/ },
  { label: 'Max concurrency', value: 'many', says: /number/ },
  { label: 'Max concurrency', value: '1.5', says: /whole number|integer/i },
  { label: 'Name', value: 'my group', says: /a-z/ },
])(
  'the form of a group says at $label what is wrong with $value',
  async ({ label, value, says }) => {
    page = await signedIn(browser, stage, '/admin/new');
    const field = page.getByLabel(label, { exact: true });
    await field.fill(value);
    await field.blur();
    if (label !== 'Name') await page.getByLabel('Name', { exact: true }).fill('fine');
    const errors = page.locator(`[id="${await field.getAttribute('id')}-errors"]`);
    await expect.poll(() => errors.textContent()).toMatch(says);
    await expect.poll(() => field.getAttribute('aria-invalid')).toBe('true');
    await expect
      .poll(() => page.getByRole('button', { name: 'Review change' }).isDisabled())
      .toBe(true);
  },
);

it('who has changed the same field meanwhile is shown, and nothing is overwritten unseen', async () => {
  page = await signedIn(browser, stage, '/admin/groups/practice/edit');
  await page.getByLabel('Max concurrency', { exact: true }).fill('7');
  await page.getByRole('button', { name: 'Review change' }).click();
  await page.getByRole('button', { name: 'Apply change' }).waitFor();
  await stage.admin.setLimit('practice', 5);
  await page.getByRole('button', { name: 'Apply change' }).click();
  await page.getByRole('region', { name: 'Conflict' }).waitFor();
  expect(await (await stage.admin.request('GET', '/groups/practice')).json()).toMatchObject({
    limits: { max_concurrency: 5 },
  });
  await stage.admin.setLimit('practice', 3);
});

it('a viewer may look at everything, and change nothing', async () => {
  const made = await stage.admin.request('POST', '/admin-keys', { id: 'looker', role: 'viewer' });
  const { secret } = (await made.json()) as { secret: string };
  page = await signedInAs(browser, stage, secret, '/admin/groups/practice');
  const pause = page.getByRole('button', { name: 'Pause', exact: true });
  await pause.waitFor();
  expect(await pause.isDisabled()).toBe(true);
  await page.goto(`${stage.url()}/admin/keys`);
  await page.getByRole('heading', { name: 'Gateway keys' }).waitFor();
  expect(await page.getByRole('button', { name: 'New key' }).count()).toBe(0);
  await stage.admin.request('DELETE', '/admin-keys/looker');
  await page.reload();
  await page.getByLabel('Token').waitFor();
});

it('none of this made the page complain', () => {
  expect(browser.complaints).toEqual([]);
});

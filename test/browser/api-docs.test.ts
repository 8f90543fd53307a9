import { expect, it } from 'vitest';
import { VIEWS } from './support/chromium.ts';
import { browser, stage } from './support/practice-stage.ts';

it('the page of the API shows the routes that have all words of a search', async () => {
  const page = await browser.open(VIEWS.desktop);
  await page.goto(`${stage.url()}/admin/api/docs?q=LEASES+release`);
  const routes = page.locator('article:visible');
  await expect.poll(() => page.locator('output').textContent()).toMatch(/^\d+ found$/);
  const ids = await routes.evaluateAll((all) => all.map(({ id }) => id));
  expect(ids).toContain('releaseLease');
  expect(ids).not.toContain('listAudit');
  await page.getByRole('searchbox').fill('"><img src=x>');
  await expect.poll(() => routes.count()).toBe(0);
  await page.getByRole('searchbox').fill('');
  await expect.poll(() => routes.count()).toBe(await page.locator('article').count());
  await page.context().close();
  expect(browser.complaints).toEqual([]);
});

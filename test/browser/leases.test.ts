import { expect, it } from 'vitest';
import { expectAccessible, expectNoSidewaysScroll, VIEWS } from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';
import { browser, stage } from './support/practice-stage.ts';

/** Leases that a caller asked for by itself, on the page of their group. */

async function ask(body: object, headers: Record<string, string> = {}): Promise<string> {
  const answer = await fetch(`${stage.url()}/leases`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const { lease = '' } = (await answer.json()) as { lease?: string };
  return lease;
}

it.each(['desktop', 'phone'] as const)(
  'are told from calls on a %s, and taken back',
  async (view) => {
    const agent = `by-itself-${view}`;
    const lease = await ask({ group: 'practice', agent });
    const page = await signedIn(browser, stage, '/admin/groups/practice', VIEWS[view]);
    const table = page.getByRole('region', { name: /^In flight/ });
    const row = table.locator('tbody tr').filter({ hasText: agent });
    await row.waitFor();
    // There is no room for the column on a phone.
    if (view === 'desktop') {
      await table.getByRole('columnheader', { name: 'Kind' }).waitFor();
      await row.getByRole('cell', { name: 'lease', exact: true }).waitFor();
    }
    await expectAccessible(page);
    await expectNoSidewaysScroll(page);
    await row.getByRole('button').first().click();
    const kind = page.locator('.lease-facts div').filter({ hasText: /^Kind/ });
    expect(await kind.textContent()).toBe('Kindlease');
    await page
      .getByText('Its holder receives the request to stop with its next renewal, within 15 s.')
      .waitFor();
    await page.getByRole('button', { name: 'Release', exact: true }).click();
    await page.getByText('The slot becomes free as soon as its holder has stopped.').waitFor();
    const renewal = await fetch(`${stage.url()}/leases/${lease}`, { method: 'PUT' });
    expect(renewal.headers.get('headgate-reason')).toBe('lease_revoked');
    const released = await fetch(`${stage.url()}/leases/${lease}`, { method: 'DELETE' });
    expect(released.status).toBe(204);
    await row.waitFor({ state: 'detached' });
    await page.context().close();
    expect(browser.complaints).toEqual([]);
  },
);

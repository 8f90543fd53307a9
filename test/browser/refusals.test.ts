import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openChat } from '../e2e/support/lifecycle-call.ts';
import { practiceConfig, startStage, type LifecycleStage } from '../e2e/support/lifecycle-stage.ts';
import { startBrowser, type RealBrowser } from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';

/** Calls that Headgate itself refused, and callers that requiring a key would refuse, as operators see them. */

let stage: LifecycleStage;
let browser: RealBrowser;
let page: Page;

beforeAll(async () => {
  stage = await startStage({ config: practiceConfig(2) });
  browser = await startBrowser();
});

afterAll(async () => {
  await browser.close();
  await stage.close();
});

async function untilListed(path: string, text: string): Promise<void> {
  const body = async () => (await stage.admin.request('GET', path)).text();
  await expect.poll(body).toContain(text);
}

it('a call that was refused at the door is found by its request id, with what to do', async () => {
  for (const id of ['req-4711', 'req-4712']) {
    const headers = { 'x-request-id': id };
    const answer = await fetch(`${stage.url()}/nowhere/v1/models`, { headers });
    expect(answer.status).toBe(404);
    await answer.text();
  }
  await untilListed('/refusals?q=req-4712', 'req-4712');
  page = await signedIn(browser, stage, '/admin/calls');
  const refusals = page.getByRole('region', { name: 'Refused by Headgate in the last hour' });
  await refusals.getByText('upstream_unknown').first().waitFor();
  await refusals.getByText('Correct the base URL of the client').waitFor();
  await page.goto(`${stage.url()}/admin/calls?q=req-4712`);
  await refusals.getByText('req-4712').waitFor();
  await page.goto(`${stage.url()}/admin/calls?q=req-never-sent`);
  await page.getByText('No matching calls').waitFor();
  expect(await refusals.count()).toBe(0);
});

it('the first key asks before it locks out callers without one, who are listed', async () => {
  const call = openChat(stage.url(), { label: 'without a key' });
  await call.ended;
  await untilListed('/keyless-callers', 'practice');
  page = await signedIn(browser, stage, '/admin/keys');
  const list = page.getByRole('region', { name: 'Callers without a gateway key' }).first();
  await list.getByRole('rowheader', { name: 'practice' }).waitFor();
  await page.getByRole('button', { name: 'New key' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Id', { exact: true }).fill('first');
  await dialog.getByRole('button', { name: 'Create key' }).click();
  const alert = dialog.getByRole('alert').filter({ hasText: 'key_missing' });
  expect(await alert.textContent()).toContain('1 caller with 1 call within the last hour');
  const keys = async () => (await stage.admin.request('GET', '/keys')).json();
  expect(await keys()).toMatchObject({ keys: [] });
  await dialog.getByRole('button', { name: 'Create key anyway' }).click();
  await page.getByLabel('Secret', { exact: true }).waitFor();
  expect(await keys()).toMatchObject({ keys: [{ id: 'first' }] });
});

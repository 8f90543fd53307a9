import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openChat } from '../e2e/support/lifecycle-call.ts';
import { NO_HOLDS, startStage, type LifecycleStage } from '../e2e/support/lifecycle-stage.ts';
import {
  expectAccessible,
  expectNoSidewaysScroll,
  startBrowser,
  VIEWS,
  type RealBrowser,
} from './support/chromium.ts';
import { signedIn, signedInAs } from './support/dashboard.ts';

/** Warnings: where they are sent is set and tested from the page, and who opens it after one sees it. */

let stage: LifecycleStage;
let browser: RealBrowser;
let receiver: Server;
let status = 200;
const bodies: string[] = [];

beforeAll(async () => {
  receiver = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      bodies.push(body);
      response.writeHead(status).end(status === 200 ? 'ok' : 'no_service');
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  stage = await startStage({
    upstream: { limit: 100 },
    config: ({ url }) => ({
      upstreams: [{ id: 'practice', base_url: url, dialect: 'openai' }],
      groups: [
        {
          name: 'practice',
          match: { upstreams: ['practice'], models: ['*'] },
          limits: { max_concurrency: 5, rpd: 2 },
          holds: NO_HOLDS,
        },
      ],
    }),
  });
  browser = await startBrowser();
});

afterAll(async () => {
  await browser.close();
  await stage.close();
  receiver.close();
});

function address(): string {
  return `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/services/hush`;
}

async function setUp(page: Page): Promise<void> {
  await page.getByLabel('URL', { exact: true }).fill(address());
  await page.getByLabel('Format').selectOption('slack');
  await page.getByRole('button', { name: 'Save' }).click();
  await page
    .getByText(/Warnings are sent to http:\/\/127\.0\.0\.1:\d+\/\(hidden\), as Slack/)
    .waitFor();
}

it.each(['desktop', 'phone'] as const)(
  'a webhook is set, tested and removed from the page, %s',
  async (view) => {
    bodies.length = 0;
    const page = await signedIn(browser, stage, '/admin/setup', VIEWS[view]);
    await page.getByText('No webhook is set.').waitFor();
    await setUp(page);
    const test = page.getByRole('button', { name: 'Send test' });
    await test.click();
    await page.getByText('The receiver accepted it').waitFor();
    expect(await page.getByLabel('Response of the receiver').textContent()).toBe('ok');
    expect(bodies.map((body) => JSON.parse(body))).toMatchObject([
      { text: '[headgate] test: This is a test. Headgate sends its warnings here.' },
    ]);
    status = 503;
    await test.click();
    await page.getByText('Delivery failed: status 503').waitFor();
    status = 200;
    expect(await page.content()).not.toContain('hush');
    await expectAccessible(page);
    await expectNoSidewaysScroll(page);
    await page.getByRole('button', { name: 'Remove webhook' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove webhook' }).click();
    await page.getByText('No webhook is set.').waitFor();
    await page.close();
  },
);

it('who opens the page after a warning sees it, on the overview and with its group', async () => {
  await stage.admin.request('PUT', '/webhook', { url: address(), format: 'slack' });
  bodies.length = 0;
  const call = openChat(stage.url(), { label: 'one', model: 'gpt-5' });
  await call.answered;
  await call.ended;
  await expect
    .poll(() => bodies.join('\n'))
    .toContain('50 % of the 24-hour limit of requests is used (1 of 2).');
  for (const view of ['desktop', 'phone'] as const) {
    const page = await signedIn(browser, stage, '/admin', VIEWS[view]);
    const recent = page.getByRole('region', { name: /^Recent warnings/ });
    await recent.getByText('50 % of the 24-hour limit of requests is used').waitFor();
    await recent.getByRole('link', { name: 'practice' }).click();
    const own = page.getByRole('region', { name: 'Warnings', exact: true });
    await own.getByText('50 % of the 24-hour limit of requests is used').waitFor();
    await expectAccessible(page);
    await expectNoSidewaysScroll(page);
    await page.close();
  }
});

it('a viewer sees where warnings go, and cannot change it', async () => {
  await stage.admin.request('PUT', '/webhook', { url: address(), format: 'slack' });
  const made = await stage.admin.request('POST', '/admin-keys', { id: 'looker', role: 'viewer' });
  const { secret } = (await made.json()) as { secret: string };
  const page = await signedInAs(browser, stage, secret, '/admin/setup');
  await page.getByText(/Warnings are sent to http:\/\/127\.0\.0\.1:\d+\/\(hidden\)/).waitFor();
  await page.getByText('Changing or testing the webhook requires the admin role.').waitFor();
  expect(await page.getByRole('button', { name: 'Send test' }).count()).toBe(0);
});

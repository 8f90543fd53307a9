import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { startServe, type Serve } from '../../scripts/serve/start-serve.ts';
import { STAGE_TOKEN } from '../e2e/support/lifecycle-stage.ts';
import { startStrictUpstream, type StrictUpstream } from '../strict-upstream/strict-upstream.ts';
import {
  expectAccessible,
  expectNoSidewaysScroll,
  startBrowser,
  VIEWS,
  type RealBrowser,
} from './support/chromium.ts';

/** The first minutes with a Headgate that nobody has set up, which hosts itself. */

const SECRET = 'UPSTREAM_PRACTICE_KEY';

let browser: RealBrowser;
let upstream: StrictUpstream;
let folder: string;
let serve: Serve;
let page: Page;

/** Starts Headgate; a restart is on the port that the page knows. */
async function start(env: NodeJS.ProcessEnv, port = 0): Promise<Serve> {
  return startServe({ port, dataDir: folder, adminToken: STAGE_TOKEN, env });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-first-run-'));
  upstream = await startStrictUpstream({ limit: 5 });
  serve = await start({});
  browser = await startBrowser();
});

afterEach(() => page.context().close());

afterAll(async () => {
  await browser.close();
  await serve.kill9();
  await upstream.close();
  await rm(folder, { recursive: true, force: true });
});

/** A page may be shown before what it shows is known: who is quick must not be ahead of it. */
const SLOW_MS = 500;

async function signIn(path = '/admin', view = {}): Promise<Page> {
  const opened = await browser.open(view);
  await opened.route('**/admin/api/upstreams?*', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
    await route.continue();
  });
  await opened.goto(`${serve.url}${path}`);
  await opened.getByLabel('Token').fill(STAGE_TOKEN);
  await opened.getByRole('button', { name: 'Sign in' }).click();
  return opened;
}

async function admin(method: string, path: string, body?: object): Promise<unknown> {
  const answer = await fetch(`${serve.url}/admin/api${path}`, {
    method,
    headers: { authorization: `Bearer ${STAGE_TOKEN}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  expect(answer.status).toBeLessThan(300);
  return answer.json();
}

it('begins with the set-up, from which the empty page of groups is one link away', async () => {
  page = await signIn();
  await page.getByRole('heading', { name: 'Set-up', level: 1 }).waitFor();
  expect(new URL(page.url()).pathname).toBe('/admin/setup');
  await page.getByText('No provider key is stored. Callers send their own.').waitFor();
  await expectAccessible(page);
  await page.getByRole('link', { name: 'Groups', exact: true }).click();
  await page.getByText('No calls have arrived yet').waitFor();
  expect(new URL(page.url()).pathname).toBe('/admin');
  await expectAccessible(page);
  // Whoever opens it anew is led again, until there is a group.
  await page.goto(`${serve.url}/admin`);
  await page.getByRole('heading', { name: 'Set-up', level: 1 }).waitFor();
});

it('leads from a stored key to an answered call in five clicks', async () => {
  const { secret } = (await admin('POST', '/keys', { id: 'me' })) as { secret: string };
  page = await signIn();
  let clicks = 0;
  const click = async (role: 'button' | 'link', name: string): Promise<void> => {
    clicks += 1;
    await page.getByRole(role, { name, exact: true }).click();
  };
  await click('link', 'Store a provider key');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Id', { exact: true }).fill('practice');
  await dialog.getByLabel('Base URL').fill(upstream.url);
  const named = dialog.getByLabel("Secret name of the operator's key");
  expect(await named.getAttribute('placeholder')).toBe(SECRET);
  await named.fill(SECRET);
  await click('button', 'Save');
  await dialog.getByText('… Waiting for the key').waitFor();
  await expectAccessible(page);
  await click('button', 'Copy');
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(`export ${SECRET}='…'`);
  await dialog.getByText('then restart Headgate').waitFor();
  // The operator does as it says, in a terminal.
  const port = Number(new URL(serve.url).port);
  await serve.stop();
  serve = await start({ [SECRET]: 'sk-real' }, port);
  await dialog.getByText('✓ The key is set').waitFor({ timeout: 30_000 });
  expect(await dialog.getByLabel('Slots').inputValue()).toBe('5');
  await click('button', 'Create group');
  await dialog.getByText('takes the calls to practice').waitFor();
  await dialog.getByLabel('Model', { exact: true }).fill('m');
  await dialog.getByLabel('Key', { exact: true }).fill(secret);
  await click('button', 'Send');
  await dialog.getByText('answered by the upstream').waitFor();
  expect(clicks).toBeLessThanOrEqual(5);
  expect(await dialog.textContent()).toMatch(/headgate-groups *practice/);
  await expectAccessible(page);
  expect(await admin('GET', '/groups/practice')).toMatchObject({
    match: { upstreams: ['practice'] },
    limits: { max_concurrency: 5 },
  });
  expect(await page.content()).not.toContain('sk-real');
});

it('makes no group in the place of another', async () => {
  page = await signIn('/admin/upstreams?add=key', VIEWS.phone);
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Id', { exact: true }).fill('groq');
  await dialog.getByLabel("Secret name of the operator's key").fill('UPSTREAM_GROQ_KEY');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByLabel('Name', { exact: true }).fill('practice');
  await dialog.getByRole('button', { name: 'Create group' }).click();
  await dialog.getByRole('alert').getByText('Choose another name').waitFor();
  await expectNoSidewaysScroll(page);
  expect(await admin('GET', '/groups/practice')).toMatchObject({
    match: { upstreams: ['practice'] },
  });
  // What was built in of it stayed.
  expect(await admin('GET', '/upstreams/groq')).toMatchObject({
    base_url: 'https://api.groq.com',
    secret: { name: 'UPSTREAM_GROQ_KEY', is_set: false },
  });
});

it('offers what a provider publishes of its plans, and takes over what is chosen', async () => {
  page = await signIn('/admin/upstreams?add=key');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Id', { exact: true }).fill('moonshot');
  await dialog.getByLabel("Secret name of the operator's key").fill('UPSTREAM_MOONSHOT_KEY');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByLabel('Provider plan').selectOption({ index: 2 });
  await dialog.getByText('As of 2026-02-01, platform.moonshot.ai').waitFor();
  expect(await dialog.getByLabel('Slots').inputValue()).toBe('50');
  await expectAccessible(page);
  await dialog.getByRole('button', { name: 'Create group' }).click();
  await dialog.getByText('takes the calls to moonshot').waitFor();
  expect(await admin('GET', '/groups/moonshot')).toMatchObject({
    limits: { max_concurrency: 50, rpm: 200 },
  });
  await page.goto(`${serve.url}/admin/groups/moonshot/edit`);
  await page.getByText('Limits that the provider publishes or reports').click();
  await page.getByRole('button', { name: 'Use Tier 2' }).click();
  const slots = page.getByLabel('Max concurrency', { exact: true });
  await expect.poll(() => slots.inputValue()).toBe('100');
  expect(await page.getByLabel('Requests per minute').inputValue()).toBe('500');
  await expectAccessible(page);
});

it('says of a missing key the line that works where it hosts itself, as code', async () => {
  page = await signIn('/admin/setup');
  await page.getByText('UPSTREAM_GROQ_KEY is not set').waitFor();
  const main = page.getByRole('main');
  await main.locator('code', { hasText: "export UPSTREAM_GROQ_KEY='…'" }).waitFor();
  expect(await main.textContent()).not.toMatch(/wrangler|`/);
  const home = await (await fetch(serve.url)).text();
  expect(home).toContain(
    "export UPSTREAM_GROQ_KEY='…' in the environment that starts Headgate, then restart it",
  );
  expect(home).not.toMatch(/wrangler|`/);
});

it('without a token it says as code how to set one', async () => {
  const closed = await mkdtemp(join(tmpdir(), 'headgate-closed-'));
  const other = await startServe({ port: 0, dataDir: closed, env: {} });
  try {
    page = await browser.open();
    await page.goto(`${other.url}/admin`);
    await page.locator('pre', { hasText: "export ADMIN_TOKEN='…'" }).waitFor();
    await page.getByText('the secret ADMIN_TOKEN is not set').waitFor();
    expect(await page.getByRole('main').textContent()).not.toMatch(/wrangler|`/);
    await expectAccessible(page);
  } finally {
    await other.kill9();
    await rm(closed, { recursive: true, force: true });
  }
});

it('complains of nothing', () => {
  expect(browser.complaints).toEqual([]);
});

import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { STAGE_TOKEN } from '../e2e/support/lifecycle-stage.ts';
import { expectAccessible } from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';
import { browser, stage } from './support/practice-stage.ts';

it('the sign-in page takes the token, and refuses another with a word that helps', async () => {
  const page = await browser.open();
  await page.goto(`${stage.url()}/admin`);
  await page.getByLabel('Token').waitFor();
  await expectAccessible(page);
  await page.getByLabel('Token').fill('guessed');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('The token is invalid').waitFor();
  await page.getByLabel('Token').fill(STAGE_TOKEN);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Groups', exact: true }).waitFor();
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/admin' });
  // Nothing that a script of any page could read has the token.
  const readable = await page.evaluate(() =>
    JSON.stringify([localStorage, sessionStorage, document.cookie, location.href]),
  );
  expect(readable).not.toContain(STAGE_TOKEN);
});

/** Opens a page, and notes the address and the referrer of each request. */
async function openNoting(path: string): Promise<{ page: Page; sent: string[] }> {
  const page = await browser.open();
  const sent: string[] = [];
  page.on('request', (request) => sent.push(request.url(), request.headers()['referer'] ?? ''));
  await page.goto(`${stage.url()}${path}`);
  return { page, sent };
}

it('an address with the token signs in, and keeps the token out of requests and the address bar', async () => {
  const { page, sent } = await openNoting(`/admin/keys?find=x#token=${STAGE_TOKEN}`);
  await page.getByRole('heading', { name: 'Gateway keys' }).waitFor();
  const { pathname, search, hash } = new URL(page.url());
  expect([pathname, search, hash]).toEqual(['/admin/keys', '?find=x', '']);
  // The driver reports the address of the first request with its fragment, which no browser sends.
  expect(sent.filter((text) => text.split('#')[0]?.includes(STAGE_TOKEN))).toEqual([]);
  await page.reload();
  await page.getByRole('heading', { name: 'Gateway keys' }).waitFor();
});

it('an address with a wrong token says so, and asks', async () => {
  const { page } = await openNoting('/admin#token=guessed');
  await page.getByRole('status').getByText('The token is invalid').waitFor();
  await page.getByLabel('Token').waitFor();
  expect(page.url()).not.toContain('guessed');
});

it('an address with a token does not replace who is signed in', async () => {
  const page = await signedIn(browser, stage);
  const signIns: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') signIns.push(request.url());
  });
  await page.goto(`${stage.url()}/admin/keys#token=guessed`);
  await page.getByRole('heading', { name: 'Gateway keys' }).waitFor();
  expect(page.url()).not.toContain('guessed');
  expect(signIns).toEqual([]);
});

it('a reload stays signed in, and signing out ends it', async () => {
  const page = await signedIn(browser, stage);
  await page.reload();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Token').waitFor();
  await page.reload();
  await page.getByLabel('Token').waitFor();
  expect(await page.context().cookies()).toEqual([]);
});

it('a page that is asked for is shown after signing in', async () => {
  const page = await signedIn(browser, stage, '/admin/keys');
  await page.getByRole('heading', { name: 'Gateway keys' }).waitFor();
  expect(new URL(page.url()).pathname).toBe('/admin/keys');
});

it('scripts and styles run under the policy of the page without a complaint', () => {
  expect(browser.complaints).toEqual([]);
});

it('answers of upstreams, which share its origin, do not run as scripts or styles in its pages', async () => {
  const complaints = browser.complaints.length;
  const page = await browser.open();
  await page.goto(`${stage.url()}/admin`);
  await page.getByLabel('Token').waitFor();
  const ran = await page.evaluate(async () => {
    const load = (element: HTMLScriptElement | HTMLLinkElement): Promise<boolean> =>
      new Promise((resolve) => {
        element.addEventListener('load', () => resolve(true));
        element.addEventListener('error', () => resolve(false));
        document.head.append(element);
      });
    const script = Object.assign(document.createElement('script'), { src: '/practice/v1/x.js' });
    const style = Object.assign(document.createElement('link'), {
      rel: 'stylesheet',
      href: '/practice/v1/x.css',
    });
    return [await load(script), await load(style)];
  });
  expect(ran).toEqual([false, false]);
  const reported = browser.complaints.slice(complaints);
  expect(reported.join('\n')).toContain('Content Security Policy');
});

import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startStage, type LifecycleStage } from '../e2e/support/lifecycle-stage.ts';
import {
  expectAccessible,
  expectNoSidewaysScroll,
  startBrowser,
  VIEWS,
  type RealBrowser,
} from './support/chromium.ts';
import { signedIn } from './support/dashboard.ts';
import { startLoad, type SupportLoad } from './support/load.ts';

/** Every page, on a phone and a desktop, by day and by night, while calls queue. */

/** `docs/images` where the docs shall have new ones; nobody wants changed pictures from every test. */
const FOLDER = process.env['SCREENSHOTS'] ?? join(tmpdir(), 'headgate-screenshots');

/** The docs show these two. */
const SHOWN: readonly string[] = ['overview', 'group'];

const PAGES = [
  { name: 'overview', path: '/admin', heading: 'Groups' },
  { name: 'table', path: '/admin?view=table&idle=shown', heading: 'Groups' },
  { name: 'group', path: '/admin/groups/openai-shared', heading: 'openai-shared' },
  { name: 'edit', path: '/admin/groups/openai-shared/edit', heading: 'Edit openai-shared' },
  { name: 'upstreams', path: '/admin/upstreams', heading: 'Upstreams' },
  { name: 'tester', path: '/admin/tester', heading: 'Tester' },
  { name: 'keys', path: '/admin/keys', heading: 'Keys' },
  { name: 'costs', path: '/admin/costs', heading: 'Costs' },
  { name: 'several', path: '/admin/several', heading: 'Bulk actions' },
  { name: 'calls', path: '/admin/calls', heading: 'Calls' },
  { name: 'audit', path: '/admin/audit', heading: 'Audit' },
  { name: 'config', path: '/admin/config', heading: 'Import / export' },
  { name: 'setup', path: '/admin/setup', heading: 'Set-up' },
  { name: 'docs', path: '/admin/api/docs', heading: 'Headgate admin API' },
] as const;

const LOOKS = (['desktop', 'phone'] as const).flatMap((view) =>
  (['light', 'dark'] as const).map((scheme) => ({ view, scheme })),
);

let stage: LifecycleStage;
let browser: RealBrowser;
let loads: SupportLoad[] = [];
const pages = new Map<string, Page>();

const group = (name: string, models: string[], limits: object, rest: object = {}) => ({
  name,
  match: { upstreams: ['practice'], models },
  limits,
  ...rest,
});

beforeAll(async () => {
  stage = await startStage({
    upstream: { limit: 100, chunks: 20, chunkDelayMs: 150 },
    config: (upstream) => ({
      upstreams: [
        { id: 'practice', base_url: upstream.url, dialect: 'openai' },
        { id: 'tight', base_url: upstream.scopeUrl('tight'), dialect: 'openai' },
      ],
      groups: [
        group('openai-shared', ['gpt-*'], { max_concurrency: 5, rpm: 600 }),
        group('claude-batch', ['claude-*'], { max_concurrency: 20 }),
        group('nightly', ['nightly-*'], { max_concurrency: 4 }, { paused: true }),
        group('embeddings', ['embed-*'], { max_concurrency: 100 }),
        group('by-model', ['mini-*'], { max_concurrency: 2 }, { partition_by: ['model'] }),
        group('research', ['o1-*'], { max_concurrency: 8 }, { dry_run: true }),
        // Allows 3, which nobody told Headgate.
        { name: 'glm-coding', match: { upstreams: ['tight'] }, limits: { max_concurrency: 12 } },
        group('vision', ['vision-*'], { max_concurrency: 16 }),
        group('retired-soon', ['old-*'], { max_concurrency: 3 }, { draining: true }),
      ],
    }),
  });
  stage.upstream.configure({ limit: 3, chunks: 20, chunkDelayMs: 150 }, 'tight');
  browser = await startBrowser();
  const load = (callers: number, model: string, path?: string) =>
    startLoad(stage, callers, { model, ...(path !== undefined && { path }) });
  loads = [
    load(14, 'gpt-5'),
    load(9, 'claude-sonnet-4-6'),
    load(3, 'nightly-run'),
    load(3, 'mini-a'),
    load(4, 'mini-b'),
    load(5, 'o1-pro'),
    load(7, 'glm-5', '/tight/v1/chat/completions'),
    load(11, 'vision-1'),
  ];
  await mkdir(FOLDER, { recursive: true });
  for (const { view, scheme } of LOOKS) {
    const look = `${view}-${scheme}`;
    pages.set(look, await signedIn(browser, stage, '/admin', { ...VIEWS[view], scheme }));
  }
});

afterAll(async () => {
  for (const call of loads) call.abandon();
  await browser.close();
  await stage.close();
});

it.each(PAGES.flatMap((page) => LOOKS.map((look) => ({ ...page, ...look }))))(
  'the page $name is accessible and fits: $view, $scheme',
  async ({ name, path, heading, view, scheme }) => {
    const page = pages.get(`${view}-${scheme}`);
    if (page === undefined) throw new Error('no such look');
    await page.goto(`${stage.url()}${path}`);
    await page.getByRole('heading', { name: heading, level: 1, exact: true }).waitFor();
    await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0);
    if (SHOWN.includes(name)) {
      await page.screenshot({ path: join(FOLDER, `dashboard-${name}-${view}-${scheme}.png`) });
    }
    await expectNoSidewaysScroll(page);
    await expectAccessible(page);
  },
);

it('none of them complains', () => {
  expect(browser.complaints).toEqual([]);
});

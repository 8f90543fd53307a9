// Every recipe of the client's README works with the package from its tarball, and the page quotes it word for word.
import { createOpenAI } from '@ai-sdk/openai';
import { BedrockRuntimeClient } from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type * as Client from '../../../packages/client/src/index.ts';
import { CLIENT_KEY, startClientStage } from '../support/client-stage.ts';
import type { LifecycleStage } from '../support/lifecycle-stage.ts';
import { NO_HOLDS } from '../support/lifecycle-stage.ts';
import { until } from '../support/lifecycle-wait.ts';
import { installPackedClient, type PackedClient } from '../support/packed-client.ts';
import type * as Agent from './recipes/agent.ts';
import type * as AiSdk from './recipes/ai-sdk.ts';
import type * as AwsSdk from './recipes/aws-sdk.ts';
import type * as Scraper from './recipes/scraper.ts';
import type * as UnlessBusy from './recipes/unless-busy.ts';
import type * as WithLease from './recipes/with-lease.ts';

const RECIPES = new URL('./recipes/', import.meta.url);
const PAGE = new URL('../../../packages/client/README.md', import.meta.url);
const LIMIT = 2;

let client: PackedClient;
let stage: LifecycleStage;
let gate: Client.Headgate;

beforeAll(async () => {
  const group = (name: string, match: object): object => {
    return { name, match, limits: { max_concurrency: LIMIT }, holds: NO_HOLDS };
  };
  [client, stage] = await Promise.all([
    installPackedClient(),
    startClientStage(LIMIT, ({ url }) => ({
      upstreams: [
        { id: 'practice', base_url: url, dialect: 'openai' },
        { id: 'bedrock', base_url: `${url}/bedrock`, dialect: 'bedrock' },
      ],
      groups: [
        group('glm', { upstreams: ['practice'] }),
        group('crawl', { models: ['pages'] }),
        group('claude', { upstreams: ['bedrock'] }),
      ],
    })),
  ]);
  process.env['HEADGATE_URL'] = stage.url();
  process.env['HEADGATE_KEY'] = CLIENT_KEY;
  const installed = (await import(
    join(client.folder, 'node_modules/headgate/dist/index.js')
  )) as typeof Client;
  gate = installed.createHeadgate({ url: stage.url(), key: CLIENT_KEY });
}, 300_000);

afterAll(async () => {
  await stage?.close();
  await client?.remove();
});

beforeEach(() => stage.upstream.reset());

/** The recipe as it lies beside the installed package. */
const recipe = async <Module>(name: string): Promise<Module> =>
  (await import(join(client.folder, `${name}.ts`))) as Module;

const chat = (content: string): object => ({
  model: 'm',
  messages: [{ role: 'user', content }],
});

const slotsInUse = async (): Promise<number> =>
  (await gate.status()).groups.reduce((sum, { slots_in_use: slots }) => sum + slots, 0);

test('with-lease: calls wait for one another, and are repeated where the provider refuses', async () => {
  const { ask } = await recipe<typeof WithLease>('with-lease');
  stage.upstream.failNext(1, 'requests');
  const all = Array.from({ length: 5 }, () => ask(stage.upstream.url, chat('Hello.')));
  for (const text of await Promise.all(all)) expect(text).toContain('Hello.');
  expect(stage.upstream.stats()).toMatchObject({ total: 6, completed: 5, rejected429: 1 });
  expect(stage.upstream.stats().peak).toBeLessThanOrEqual(LIMIT);
  expect(await slotsInUse()).toBe(0);
});

test('scraper: many pages, a few at once', async () => {
  const { readPages } = await recipe<typeof Scraper>('scraper');
  const urls = Array.from({ length: 8 }, (_, n) => `${stage.upstream.url}/v1/models?page=${n}`);
  const pages = await readPages(gate, urls);
  expect(pages).toHaveLength(8);
  for (const page of pages) expect(page).toContain('"data"');
  expect(stage.upstream.stats()).toMatchObject({ uncounted: 8 });
  expect(await slotsInUse()).toBe(0);
});

test('agent: a slot for each turn, none while its tool runs', async () => {
  const { runAgent } = await recipe<typeof Agent>('agent');
  const held: number[] = [];
  const text = await runAgent(
    gate,
    async (messages) => {
      held.push(await slotsInUse());
      const tool = async (): Promise<string> => {
        await until('the slot is free', async () => (await slotsInUse()) === 0);
        return 'result';
      };
      return messages.length < 5
        ? { text: 'call', tool }
        : { text: messages.join(' '), tool: null };
    },
    'task',
  );
  expect(text).toBe('task call result call result');
  expect(held).toEqual([1, 1, 1]);
});

test('aws-sdk: a call that the SDK signs waits for its slot, and again after a refusal', async () => {
  const { converse } = await recipe<typeof AwsSdk>('aws-sdk');
  stage.upstream.configure({ keepsRequests: true });
  const bedrock = new BedrockRuntimeClient({
    region: 'us-east-1',
    endpoint: `${stage.upstream.url}/bedrock`,
    credentials: { accessKeyId: 'AKIAEXAMPLE', secretAccessKey: 'secret' },
    maxAttempts: 1,
    // The test upstream speaks HTTP/1.1.
    requestHandler: new NodeHttpHandler(),
  });
  stage.upstream.failNext(1, 'requests');
  const answers = await Promise.all(
    ['one', 'two', 'three'].map((text) => converse(gate, bedrock, 'claude', text)),
  );
  expect(answers.map(({ $metadata }) => $metadata.httpStatusCode)).toEqual([200, 200, 200]);
  const { total, rejected429, peak } = stage.upstream.stats();
  expect([total, rejected429]).toEqual([4, 1]);
  expect(peak).toBeLessThanOrEqual(LIMIT);
  const [first] = stage.upstream.received();
  expect(first?.rawHeaders.join('\n')).toMatch(/^AWS4-HMAC-SHA256 /m);
  bedrock.destroy();
});

test('ai-sdk: the slot is held until the stream ends, also by its reader', async () => {
  const { stream } = await recipe<typeof AiSdk>('ai-sdk');
  const provider = createOpenAI({ baseURL: `${stage.upstream.url}/v1`, apiKey: 'sk-provider' });
  const pieces = await stream(gate, provider.chat('m'), 'Hello. [[strict chunks=5]]');
  const reader = pieces.getReader();
  await reader.read();
  expect(await slotsInUse()).toBe(1);
  while (!(await reader.read()).done);
  expect(await slotsInUse()).toBe(0);
  const left = await stream(gate, provider.chat('m'), 'Hello. [[strict silent-after-chunks=1]]');
  await left.cancel();
  expect(await slotsInUse()).toBe(0);
  await until('the call has ended', () => stage.upstream.stats().inFlight === 0);
});

test('unless-busy: work that may be left out', async () => {
  const { improveUnlessBusy } = await recipe<typeof UnlessBusy>('unless-busy');
  const held = await Promise.all([gate.acquire({ group: 'glm' }), gate.acquire({ group: 'glm' })]);
  expect(await improveUnlessBusy(gate, async () => 'better')).toBeNull();
  await Promise.all(held.map((lease) => lease.release()));
  expect(await improveUnlessBusy(gate, async () => 'better')).toBe('better');
  expect(await slotsInUse()).toBe(0);
});

describe('the README', () => {
  test('quotes every recipe word for word, and no code besides', async () => {
    const page = await readFile(PAGE, 'utf8');
    const quotes = await Promise.all(
      (await readdir(RECIPES)).map(
        async (name) => `\`\`\`ts\n${await readFile(new URL(name, RECIPES), 'utf8')}\`\`\``,
      ),
    );
    for (const quote of quotes) expect(page).toContain(quote);
    const blocks = page.match(/^```ts\n[\s\S]*?^```$/gm) ?? [];
    expect([...blocks].sort()).toEqual([...quotes].sort());
  });

  test('tells how the package is installed, which is how these tests install it', async () => {
    const page = await readFile(PAGE, 'utf8');
    expect(page).toContain('npm install headgate@npm:headgate-client');
    const { name } = JSON.parse(
      await readFile(join(client.folder, 'node_modules/headgate/package.json'), 'utf8'),
    ) as { name: string };
    expect(name).toBe('headgate-client');
  });
});

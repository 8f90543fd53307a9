import { LLMock } from '@copilotkit/aimock';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServe } from '../../../scripts/serve/start-serve.ts';
import type { StrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { startStrictUpstream } from '../../strict-upstream/strict-upstream.ts';
import { ADMIN_TOKEN } from './group-status.ts';
import { prepareMock } from './mock-answers.ts';

/** A Headgate on workerd, and the two upstreams that it stands before. */
export interface SdkStage {
  /** Headgate's base URL, without a trailing slash. */
  readonly url: string;
  readonly strict: StrictUpstream;
  /** Base URL of the independent mock, without a trailing slash. */
  readonly mockUrl: string;
  /** Ends all three. Throws if Headgate has noted a fault of its own. */
  stop(): Promise<void>;
}

/** Additions of a test to the configuration of a stage. */
export interface StageExtras {
  readonly groups?: readonly unknown[];
  readonly keys?: readonly unknown[];
  readonly upstreams?: (
    strict: StrictUpstream,
  ) => readonly UpstreamEntry[] | Promise<readonly UpstreamEntry[]>;
  readonly env?: NodeJS.ProcessEnv;
}

/** An entry of `upstreams`; one with a known id takes the place of the stage's own. */
type UpstreamEntry = { readonly id: string; readonly [field: string]: unknown };

/** The built-in providers with the strict upstream's address, and the mock in several dialects. */
function upstreams(strict: string, mock: string): readonly UpstreamEntry[] {
  return [
    ...['openai', 'anthropic', 'gemini', 'ollama'].map((id) => ({ id, base_url: strict })),
    { id: 'azure', base_url: strict, dialect: 'azure' },
    { id: 'bedrock', base_url: strict, dialect: 'bedrock' },
    ...['openai', 'anthropic', 'gemini', 'azure', 'ollama'].map((dialect) => ({
      id: `mock-${dialect}`,
      base_url: mock,
      dialect,
    })),
  ];
}

/** Starts Headgate before a strict upstream and before aimock. */
export async function startSdkStage(extras: StageExtras = {}): Promise<SdkStage> {
  const dataDir = await mkdtemp(join(tmpdir(), 'headgate-sdk-'));
  const strict = await startStrictUpstream();
  const mock = prepareMock(new LLMock({ port: 0 }));
  const mockUrl = await mock.start();
  const own = (await extras.upstreams?.(strict)) ?? [];
  const ids = new Set(own.map(({ id }) => id));
  const usual = upstreams(strict.url, mockUrl).filter(({ id }) => !ids.has(id));
  const serve = await startServe({
    port: 0,
    dataDir,
    adminToken: ADMIN_TOKEN,
    env: extras.env ?? {},
    config: {
      upstreams: [...usual, ...own],
      groups: extras.groups ?? [],
      keys: extras.keys ?? [],
    },
  });
  return {
    url: serve.url,
    strict,
    mockUrl,
    async stop() {
      await Promise.all([serve.kill9(), mock.stop(), strict.close()]);
      await rm(dataDir, { recursive: true, force: true });
      const fault = /^.*internal_error.*$/m.exec(serve.logs());
      if (fault !== null) throw new Error(`Headgate failed: ${fault[0]}`);
    },
  };
}

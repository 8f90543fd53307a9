import { cloudflareTest } from '@cloudflare/vitest-plugin';
import { defineConfig, type Plugin, type TestProjectInlineConfiguration } from 'vitest/config';

/** Tokens of the workers tests; nothing outside them knows these. */
const TEST_BINDINGS = {
  ADMIN_TOKEN: 'test-admin-token',
  PRIVATE_UPSTREAMS: 'allow',
  UPSTREAM_TEST_KEY: 'operator-secret-4711',
  WEBHOOK_TEST: 'webhook-secret-4712',
  METRICS_TOKEN: 'test-metrics-token',
};

/** What the Worker takes from npm, as one module each: every file of the workers tests loads them anew. */
const BUNDLED = [
  'zod',
  'yaml',
  'hono',
  'hono/jwt',
  'jose/errors',
  'jose/jwks/local',
  'jose/jwt/sign',
  'jose/jwt/verify',
  'standardwebhooks',
  'hono/html',
  'hono/cookie',
  'hono/body-limit',
  'hono/secure-headers',
];

/** Their source maps are twice as long as they are, and nobody debugs them here. */
const withoutMapsOfBundled: Plugin = {
  name: 'without-maps-of-bundled',
  enforce: 'post',
  transform: (code, id) =>
    id.includes('/deps_ssr/') ? { code, map: { mappings: '' } } : undefined,
};

/** A file of these takes less time than a process for it would, so they share three: some files wait. */
const SHARED_PROCESSES = { isolate: false, maxWorkers: 3 };

/** They wait more than they compute: eight at a time keep two cores busy. */
const SIDE_BY_SIDE = { maxWorkers: 8, sequence: { groupOrder: 1 } };

/**
 * Files of these run one after another in the same eight runtimes: `test/workers/support/setup.ts` restores each runtime
 * between them.
 */
const SHARED_RUNTIME: TestProjectInlineConfiguration['test'] = { isolate: false };

/** A call that is under way at the end of a file rejects so, and nothing waits for it. */
const OF_ENDED_FILES = [
  'Application called deleteAllDurableObjects().',
  'The test file has ended.',
];

/** Thousands of calls in one process: beside others it would find the machine too busy for them, so they come last. */
const LARGE = ['test/workers/group/herd.slow.ts', 'test/workers/leases/faults.slow.ts'];

/**
 * The default of one second is too short for a machine that is busy with other things. Less than a lease lasts without a
 * renewal (45 s): one that is never released must not pass as released.
 */
const POLL = { expect: { poll: { timeout: 40_000, interval: 50 } } };

/** On such a machine, starting a server or a browser takes a while. */
const PATIENT = { ...POLL, testTimeout: 300_000, hookTimeout: 180_000 };

/** Fails every test in which a Headgate that it has started says that it broke an invariant. */
const WATCHES_SERVE = 'test/support/serve-violations.ts';

/** Tests with real SDKs and sockets on plain workerd, as an operator starts it. */
const e2eProject = (name: string, include: string): TestProjectInlineConfiguration => ({
  test: {
    name,
    include: [include],
    setupFiles: [WATCHES_SERVE],
    globalSetup: ['test/support/build-setup.ts'],
    // Loading the SDKs and scripts for each file takes longer than starting the servers of most files.
    isolate: false,
    ...PATIENT,
    ...SIDE_BY_SIDE,
  },
});

/** Tests inside the runtime, with the objects of the Worker. */
const workersProject = (name: string, test: TestProjectInlineConfiguration['test']) => ({
  plugins: [
    withoutMapsOfBundled,
    cloudflareTest({
      wrangler: { configPath: './wrangler.toml' },
      miniflare: {
        bindings: TEST_BINDINGS,
        analyticsEngineDatasets: { ANALYTICS: { dataset: 'headgate_calls' } },
      },
    }),
  ],
  test: {
    name,
    deps: { optimizer: { ssr: { enabled: true, include: BUNDLED } } },
    setupFiles: ['test/workers/support/setup.ts'],
    globalSetup: ['test/support/build-setup.ts', 'test/support/upstream-setup.ts'],
    ...PATIENT,
    ...test,
  },
});

export default defineConfig({
  test: {
    onUnhandledError: ({ message }) => !OF_ENDED_FILES.includes(message),
    projects: [
      {
        test: {
          name: 'unit',
          ...SHARED_PROCESSES,
          setupFiles: ['test/support/shared-clock.ts'],
          include: ['test/unit/**/*.test.ts'],
          ...POLL,
          testTimeout: 90_000,
        },
      },
      {
        test: {
          name: 'model',
          ...SHARED_PROCESSES,
          include: ['test/model/**/*.test.ts'],
          // A minute of computing alone, and several beside others.
          testTimeout: 300_000,
        },
      },
      workersProject('workers', {
        ...SIDE_BY_SIDE,
        ...SHARED_RUNTIME,
        include: ['test/workers/**/*.test.ts'],
      }),
      e2eProject('e2e', 'test/e2e/**/*.test.ts'),
      e2eProject('e2e-slow', 'test/e2e/**/*.slow.ts'),
      workersProject('workers-slow', {
        ...SIDE_BY_SIDE,
        ...SHARED_RUNTIME,
        include: ['test/workers/**/*.slow.ts'],
        exclude: LARGE,
      }),
      workersProject('large', {
        maxWorkers: 1,
        sequence: { groupOrder: 2 },
        include: LARGE,
      }),
      {
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          setupFiles: [WATCHES_SERVE],
          globalSetup: ['test/support/build-setup.ts'],
          ...PATIENT,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'agents',
          include: ['test/agents/**/*.test.ts'],
          setupFiles: [WATCHES_SERVE],
          globalSetup: ['test/support/build-setup.ts', 'test/agents/install.ts'],
          testTimeout: 300_000,
          hookTimeout: 180_000,
          ...POLL,
        },
      },
      {
        test: {
          name: 'long',
          include: ['test/e2e/**/*.long.ts'],
          setupFiles: [WATCHES_SERVE],
          globalSetup: ['test/support/build-setup.ts'],
          ...POLL,
          testTimeout: 900_000,
          hookTimeout: 180_000,
          maxWorkers: 2,
        },
      },
    ],
  },
});

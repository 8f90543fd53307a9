import { cloudflareTest } from '@cloudflare/vitest-plugin';
import { defineConfig } from 'vitest/config';

/** Tokens of the workers tests; nothing outside them knows these. */
const TEST_BINDINGS = {
  ADMIN_TOKEN: 'test-admin-token',
  PRIVATE_UPSTREAMS: 'allow',
  UPSTREAM_TEST_KEY: 'operator-secret-4711',
  WEBHOOK_TEST: 'webhook-secret-4712',
  METRICS_TOKEN: 'test-metrics-token',
};

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'model',
          include: ['test/model/**/*.test.ts'],
          testTimeout: 60_000,
        },
      },
      {
        plugins: [
          cloudflareTest({
            wrangler: { configPath: './wrangler.toml' },
            miniflare: {
              bindings: TEST_BINDINGS,
              analyticsEngineDatasets: { ANALYTICS: { dataset: 'headgate_calls' } },
            },
          }),
        ],
        test: {
          name: 'workers',
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
          include: ['test/workers/**/*.test.ts'],
          globalSetup: ['test/support/build-setup.ts', 'test/support/upstream-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: ['test/support/build-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'browser',
          include: ['test/browser/**/*.test.ts'],
          globalSetup: ['test/support/build-setup.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          // What a person sees comes over the feed, at most once a second.
          expect: { poll: { timeout: 15_000, interval: 100 } },
          fileParallelism: false,
        },
      },
      {
        test: {
          name: 'long',
          include: ['test/e2e/**/*.long.ts'],
          globalSetup: ['test/support/build-setup.ts'],
          testTimeout: 900_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});

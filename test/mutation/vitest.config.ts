import { defineConfig } from 'vitest/config';

/** Tests of the core that decide quickly: each mutant runs those that reach what was changed. */
export default defineConfig({
  test: {
    include: ['test/unit/core/**/*.test.ts', 'test/unit/metrics/{record,histogram}.test.ts'],
    setupFiles: ['test/mutation/seed.ts'],
    testTimeout: 30_000,
  },
});

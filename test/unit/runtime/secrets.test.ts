import { expect, test } from 'vitest';
import { howToSet, readSecret, wayToSet } from '../../../src/runtime/secrets.ts';

test('a secret is set with wrangler on Cloudflare, and in the environment where Headgate hosts itself', () => {
  expect(howToSet({}, 'UPSTREAM_KEY')).toBe('npx wrangler secret put UPSTREAM_KEY');
  expect(howToSet({ BOOT_ID: 'b1' }, 'UPSTREAM_KEY')).toBe(
    "export UPSTREAM_KEY='…' where Headgate is started, and restart it",
  );
  expect(wayToSet({}, 'UPSTREAM_KEY').command).toBe('npx wrangler secret put UPSTREAM_KEY');
  expect(wayToSet({ BOOT_ID: 'b1' }, 'UPSTREAM_KEY')).toEqual({
    command: "export UPSTREAM_KEY='…'",
    afterwards: 'Say so where Headgate is started, and restart it.',
  });
});

test('a secret that is empty is not set', () => {
  const env = { UPSTREAM_KEY: 'sk-1', WEBHOOK_SECRET: '', GROUPS: {} };
  expect(readSecret(env, 'UPSTREAM_KEY')).toBe('sk-1');
  for (const name of ['WEBHOOK_SECRET', 'ADMIN_TOKEN', 'GROUPS']) {
    expect(readSecret(env, name)).toBeNull();
  }
});

import { expect, test } from 'vitest';
import { howToSet } from '../../../src/runtime/secrets.ts';

test('a secret is set with wrangler on Cloudflare, and in the environment where Headgate hosts itself', () => {
  expect(howToSet({}, 'UPSTREAM_KEY')).toBe('npx wrangler secret put UPSTREAM_KEY');
  expect(howToSet({ BOOT_ID: 'b1' }, 'UPSTREAM_KEY')).toBe(
    'UPSTREAM_KEY=… in the environment of npm run serve',
  );
});

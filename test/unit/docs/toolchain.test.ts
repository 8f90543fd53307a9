// What is deployed with, tested on and served by: one runtime, and a mode of updates that somebody chose.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

interface Package {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly overrides: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest;
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  readonly packages: Readonly<Record<string, Package>>;
};

const versionsOf = (name: string) =>
  Object.entries(packages)
    .filter(([path]) => path.endsWith(`node_modules/${name}`))
    .map(([, { version }]) => version);

it('tests, development, deploys and `npm run serve` have one runtime', () => {
  // The package brings the runtime along; what builds it stays here.
  const { workerd } = manifest.dependencies;
  const { wrangler } = manifest.devDependencies;
  const { miniflare } = packages['node_modules/wrangler']?.dependencies ?? {};
  expect(versionsOf('workerd')).toEqual([workerd]);
  expect(versionsOf('wrangler')).toEqual([wrangler]);
  expect(versionsOf('miniflare')).toEqual([miniflare]);
});

it('the test tool runs on what wrangler runs on', () => {
  const { miniflare } = packages['node_modules/wrangler']?.dependencies ?? {};
  expect(manifest.overrides).toEqual({
    '@cloudflare/vitest-plugin': { miniflare, wrangler: '$wrangler' },
  });
});

it('a deploy resets objects at once, as docs/operations.md says', () => {
  const settings = readFileSync('wrangler.toml', 'utf8');
  expect(settings).toMatch(/^\[durable_objects\.code_update_strategy\]\nmode = "immediate"$/m);
  expect(readFileSync('docs/operations.md', 'utf8')).toContain('`mode = "immediate"`');
});

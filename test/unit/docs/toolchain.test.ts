// The toolchain: one runtime for tests and deploys, the mode of updates, and a lock file from which npm 10 and 11 install.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

type ToolchainNames = Readonly<Record<string, unknown>>;

interface Package {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: ToolchainNames;
  readonly optionalDependencies?: ToolchainNames;
  readonly peerDependencies?: ToolchainNames;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
  readonly libc?: readonly string[];
}

interface ToolchainManifest {
  readonly packageManager: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly overrides: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as ToolchainManifest;
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
    // Its optional peer is zod 3. npm 10 wants an entry for it in the lock file, and npm 11 removes that entry.
    '@llamaindex/openai': { zod: '$zod' },
  });
});

/** Names of the packages that `npm ci` wants in the lock file for a package: those of other platforms too. */
function wantedBy(one: Package): string[] {
  const peers = Object.keys(one.peerDependencies ?? {});
  const optionalPeers = one.peerDependenciesMeta ?? {};
  return [
    ...Object.keys(one.dependencies ?? {}),
    ...Object.keys(one.devDependencies ?? {}),
    ...Object.keys(one.optionalDependencies ?? {}),
    ...peers.filter((name) => optionalPeers[name]?.optional !== true),
  ];
}

/** Whether a package at a path finds a dependency in its own folder, or in one above it. */
function findsDependency(path: string, name: string): boolean {
  const folder = path === '' ? '' : `${path}/`;
  if (packages[`${folder}node_modules/${name}`] !== undefined) return true;
  if (path === '') return false;
  return findsDependency(path.slice(0, Math.max(0, path.lastIndexOf('/node_modules/'))), name);
}

it('every dependency in the lock file has an entry, also those of other platforms', () => {
  const missing = Object.entries(packages).flatMap(([path, one]) =>
    wantedBy(one)
      .filter((name) => !findsDependency(path, name))
      .map((name) => `${path} needs ${name}`),
  );
  expect(missing).toEqual([]);
});

it('npm 10 and npm 11 leave the lock file as it is', () => {
  // npm 11 writes `libc`, npm 10 removes it, and npm 11 leaves a lock file without it alone.
  const withLibc = Object.entries(packages).filter(([, { libc }]) => libc !== undefined);
  expect(withLibc.map(([path]) => path)).toEqual([]);
  expect(manifest.packageManager).toMatch(/^npm@10\.\d+\.\d+$/);
  const page = readFileSync('CONTRIBUTING.md', 'utf8');
  expect(page).toContain(`npx ${manifest.packageManager} install --package-lock-only`);
});

it('a deploy resets objects at once, as docs/upgrade.md says', () => {
  const settings = readFileSync('wrangler.toml', 'utf8');
  expect(settings).toMatch(/^\[durable_objects\.code_update_strategy\]\nmode = "immediate"$/m);
  expect(readFileSync('docs/upgrade.md', 'utf8')).toContain('`mode = "immediate"`');
});

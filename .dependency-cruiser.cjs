// The dependency rule of this codebase. A folder may import only what its row lists.
const layers = {
  core: [],
  contract: ['src/core/', 'zod/'],
  history: ['src/core/', 'src/contract/'],
  runtime: ['src/env.ts', 'src/core/', 'src/contract/', 'standardwebhooks/'],
  upstream: ['src/core/', 'src/contract/', 'src/runtime/'],
  providers: ['src/core/', 'src/contract/', 'src/upstream/'],
  routing: [
    ...['src/env.ts', 'src/core/', 'src/contract/', 'src/runtime/', 'src/upstream/', 'src/providers/'],
  ],
  config: [
    ...['src/env.ts', 'src/core/', 'src/contract/', 'src/runtime/', 'src/upstream/', 'src/providers/'],
    ...['src/routing/', 'leven/', 'yaml/', 'zod/'],
  ],
  group: [
    ...['src/env.ts', 'src/core/', 'src/contract/', 'src/runtime/', 'src/routing/', 'src/history/'],
    'cloudflare:workers',
  ],
  runs: [
    ...['src/env.ts', 'src/core/', 'src/contract/', 'src/runtime/', 'src/routing/'],
    'cloudflare:workers',
  ],
  directory: [
    ...['src/env.ts', 'src/core/', 'src/contract/', 'src/runtime/', 'src/routing/', 'src/config/'],
    // A change that goes back by itself is checked like any other.
    ...['src/providers/', 'cloudflare:workers'],
  ],
  attention: ['src/core/', 'src/contract/', 'src/routing/'],
  overview: [
    ...['src/env.ts', 'src/core/', 'src/contract/', 'src/runtime/', 'src/upstream/', 'src/providers/'],
    ...['src/routing/', 'src/config/', 'src/attention/'],
  ],
  feed: [
    ...['src/env.ts', 'src/core/', 'src/contract/', 'src/runtime/', 'src/routing/', 'src/overview/'],
    ...['src/attention/', 'cloudflare:workers'],
  ],
  call: [
    ...['src/env.ts', 'src/core/', 'src/contract/', 'src/runtime/', 'src/upstream/', 'src/providers/'],
    ...['src/routing/', 'src/config/', 'cloudflare:workers', 'zod/'],
  ],
  admin: [
    ...['src/env.ts', 'src/core/', 'src/contract/', 'src/runtime/', 'src/upstream/', 'src/providers/'],
    ...['src/routing/', 'src/config/', 'src/attention/', 'src/overview/', 'src/history/'],
    ...['hono/', 'jose/', 'zod/'],
  ],
  http: [
    ...['src/env.ts', 'src/core/', 'src/contract/', 'src/runtime/', 'src/upstream/', 'src/routing/'],
    ...['src/config/', 'src/overview/', 'src/call/', 'src/admin/', 'hono/', 'zod/'],
  ],
};

// The folders of src/call, from low to high. Each imports only itself and lower ones. Adapters import all of these, and
// not each other.
const callLayers = ['results', 'identity', 'request', 'plan', 'observe', 'acquire', 'attempts', 'answer', 'drive'];
const callAdapters = ['models', 'socket', 'leases'];
const callFolders = [...callLayers, ...callAdapters];

/** The folders of src/call that a folder of it may import. */
function callFoldersBelow(folder) {
  const at = callLayers.indexOf(folder);
  return at < 0 ? [...callLayers, folder] : callLayers.slice(0, at + 1);
}

const escape = (path) => path.replace(/[.]/g, '\\.');

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    ...Object.entries(layers).map(([layer, allowed]) => ({
      name: `${layer}-imports-only-its-row`,
      severity: 'error',
      from: { path: `^src/${layer}/` },
      to: {
        pathNot: [`src/${layer}/`, ...allowed].map((path) => `^(node_modules/)?${escape(path)}`),
      },
    })),
    ...callFolders.map((folder) => ({
      name: `call-${folder}-imports-only-lower-layers`,
      severity: 'error',
      from: { path: `^src/call/${folder}/` },
      to: { path: '^src/call/', pathNot: `^src/call/(${callFoldersBelow(folder).join('|')})/` },
    })),
    {
      name: 'files-of-call-are-in-a-layer',
      severity: 'error',
      from: { path: '^src/call/', pathNot: `^src/call/(handle\\.ts$|(${callFolders.join('|')})/)` },
      to: {},
    },
    {
      name: 'words-of-the-core-import-only-words',
      severity: 'error',
      from: { path: '^src/core/words/' },
      to: { pathNot: '^src/core/words/' },
    },
    {
      name: 'parts-of-the-core-know-no-state',
      severity: 'error',
      from: { path: '^src/core/parts/' },
      to: { pathNot: '^src/core/(words|parts)/' },
    },
    {
      name: 'dashboard-knows-the-contract-its-syntax-and-the-admin-client',
      severity: 'error',
      from: { path: '^dashboard/', pathNot: '^dashboard/api-docs/' },
      to: { path: '^src/', pathNot: '^src/((contract|core|config)/|admin/client[.]ts$)' },
    },
    {
      // The dashboard and the CLI load the client, and neither handlers nor schemas.
      name: 'admin-client-imports-types-alone',
      severity: 'error',
      from: { path: '^src/admin/client[.]ts$' },
      to: { dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'import-knows-the-contract-and-its-checks',
      severity: 'error',
      from: { path: '^packages/import/' },
      to: {
        pathNot: '^(node_modules/)?(packages/import/|src/(core|contract|runtime|upstream|providers|routing|config)/|src/admin/client[.]ts$|zod/)',
      },
    },
    {
      name: 'client-stands-alone',
      severity: 'error',
      from: { path: '^packages/client/' },
      to: { pathNot: '^packages/client/' },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'src-never-imports-test',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|bench|scripts|dashboard|packages)/' },
    },
  ],
  options: {
    tsPreCompilationDeps: true, // Type-only imports count: a type is a dependency too.
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
  },
};

// The dependency rule of this codebase. A folder may import only what its row lists.
const layers = {
  core: [],
  contract: ['src/core/', 'leven/', 'zod/', 'yaml/'],
  group: ['src/core/', 'src/contract/', 'cloudflare:workers'],
  directory: ['src/core/', 'src/contract/', 'cloudflare:workers'],
  upstream: ['src/core/', 'src/contract/'],
  routing: ['src/core/', 'src/contract/', 'src/upstream/'],
  overview: ['src/core/', 'src/contract/', 'src/upstream/', 'src/routing/'],
  feed: ['src/core/', 'src/contract/', 'src/overview/', 'cloudflare:workers'],
  http: [
    ...['src/core/', 'src/contract/', 'src/upstream/', 'src/routing/', 'src/overview/'],
    ...['hono/', 'zod/', 'cloudflare:workers'],
  ],
};

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
    {
      name: 'dashboard-knows-the-contract-alone',
      severity: 'error',
      from: { path: '^dashboard/' },
      to: { path: '^src/', pathNot: '^src/(contract|core)/' },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'src-never-imports-test',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|bench|scripts|dashboard)/' },
    },
  ],
  options: {
    tsPreCompilationDeps: true, // Type-only imports count: a type is a dependency too.
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
  },
};

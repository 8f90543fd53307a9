// Every route that the docs quote is served: by method and path, and by the parameters of its query.
import { readFileSync } from 'node:fs';
import { parseArgsStringToArgv } from 'string-argv';
import { expect, it } from 'vitest';
import type { AdminRoute } from '../../../src/admin/route.ts';
import { ADMIN_ROUTES } from '../../../src/admin/routes.ts';
import { leasesOpenApi } from '../../../dashboard/api-docs/leases-openapi.ts';
import { QUOTING_PAGES, quotesOf } from './pages.ts';

interface QuotedRoute {
  readonly method: string;
  readonly path: string;
  /** Names of the parameters of its query. Null: whatever the upstream takes. */
  readonly query: readonly string[] | null;
}

const ADMIN: readonly QuotedRoute[] = Object.values<AdminRoute>(ADMIN_ROUTES).map(
  ({ method, path, query }) => ({
    method,
    path: `/admin/api${path}`,
    query: Object.keys(query?.shape ?? {}),
  }),
);

const LEASES: readonly QuotedRoute[] = Object.entries(leasesOpenApi().paths).flatMap(
  ([path, operations]) =>
    Object.keys(operations).map((method) => ({ method: method.toUpperCase(), path, query: [] })),
);

/** Routes of the table in `src/http/app.ts`, and pages of the dashboard. */
const OTHERS: readonly QuotedRoute[] = [
  ...[...readFileSync('src/http/app.ts', 'utf8').matchAll(/app\.(get|post)\('(\/[^']*)'/g)].map(
    ([, method = '', path = '']) => ({
      method: method.toUpperCase(),
      path: path.replaceAll(/:(\w+)/g, '{$1}'),
      query: [],
    }),
  ),
  { method: 'GET', path: '/leases/openapi.json', query: [] },
  { method: 'GET', path: '/admin/api/docs', query: [] },
];

const OWN = [...ADMIN, ...LEASES, ...OTHERS];

/** Paths of calls: below an upstream, or below a path on which the model decides. */
const CALLS = /^\/(?:v1|v1beta|openai|anthropic|gemini|[\w-]+\/v1)(?:\/|$)/;

/** Quoted routes of providers, which no upstream id precedes. */
const OF_PROVIDERS = new Set(['GET /models', 'POST /realtime/client_secrets']);

/** A segment for which a reader puts in a value. */
const PLACEHOLDER = /^(?:\{.+\}|\$.+|[A-Z_]+|…|\*)$/;

function matches(route: string, path: string): boolean {
  const [ours, theirs] = [route, path].map((each) => each.replace(/\/+$/, '').split('/'));
  if (ours === undefined || ours.length !== theirs?.length) return false;
  return ours.every((part, at) => {
    const given = theirs[at] ?? '';
    return part.startsWith('{') ? given !== '' : part === given;
  });
}

/** Why a quoted route is not served; null: it is. A method of null stands for any, and for a beginning of paths. */
function faultOf(method: string | null, url: string): string | null {
  const [path = '', query = ''] = url.split('?');
  const name = `${method ?? 'any method'} ${url}`;
  if (CALLS.test(path) || OF_PROVIDERS.has(`${method} ${path}`)) return null;
  const full = path.startsWith('/admin/') ? path : `/admin/api${path}`;
  if (method === null && OWN.some((route) => route.path.startsWith(`${path}/`))) return null;
  const at = OWN.filter(({ path: own }) => matches(own, path) || matches(own, full));
  const served = at.find((route) => method === null || route.method === method);
  if (served === undefined) {
    const others = at.map((route) => route.method).join(', ');
    return at.length === 0 ? `${name}: no such path` : `${name}: only ${others}`;
  }
  const names = query === '' ? [] : query.split('&').map((one) => one.split('=')[0] ?? '');
  const unknown = names.filter((one) => !PLACEHOLDER.test(one) && !served.query?.includes(one));
  return unknown.length === 0 ? null : `${name}: no parameter ${unknown.join(', ')}`;
}

/** Routes that a quote names outright: `GET /a`, `PUT`, `DELETE /b` are two quotes, of which the first has no path. */
function namedIn(quote: string): [string, string][] {
  const found = quote.matchAll(/\b(GET|PUT|PATCH|POST|DELETE) (\/[^\s|'",)]*)/g);
  return [...found].map(([, method = '', path = '']) => [method, path]);
}

/** Beginnings of URLs of ours in commands. */
const BASE =
  /^(?:\$\{?(?:HEADGATE(?:_URL)?|url|api)\}?|https?:\/\/(?:localhost:\d+|headgate\.[\w.<>-]+))(?=\/|$)/;

/** Calls of curl in a quote, by method and path; a method is `POST` where a body is sent and none is named. */
function curlsIn(quote: string): [string, string][] {
  return [...quote.matchAll(/\bcurl (.*?)(?= \| |[`)]*$|\)"?;| #)/g)].flatMap(([, text = '']) => {
    const args = parseArgsStringToArgv(text);
    const flagAt = args.findIndex((arg) => arg === '-X' || arg === '--request');
    const isWithBody = args.some((arg) => /^(?:--json|--data.*|-d|-F|--form)$/.test(arg));
    const method = flagAt < 0 ? (isWithBody ? 'POST' : 'GET') : (args[flagAt + 1] ?? '');
    return args
      .filter((arg) => BASE.test(arg))
      .map((arg): [string, string] => {
        const base = arg.startsWith('$api') ? '/admin/api' : '';
        return [method, base + (arg.replace(BASE, '') || '/')];
      });
  });
}

/** Paths that a quote consists of, if they begin like one of ours. A `*` at the end stands for every path below. */
function pathsIn(quote: string): string[] {
  const [, path] =
    /^(\/(?:admin\/api|leases|status|metrics|healthz|tickets|webhooks)(?:[/?][^\s]*)?)$/.exec(
      quote,
    ) ?? [];
  return path === undefined || path.endsWith('*') ? [] : [path];
}

function faultsOf(page: string): string[] {
  return quotesOf(page).flatMap((quote) => {
    const named = [...namedIn(quote), ...curlsIn(quote)].map(([method, url]) =>
      faultOf(method, url),
    );
    const paths = pathsIn(quote).map((path) => faultOf(null, path));
    return [...named, ...paths].filter((fault) => fault !== null);
  });
}

it.each(QUOTING_PAGES)('every route that %s quotes is served', (page) => {
  expect(faultsOf(page)).toEqual([]);
});

it.each([
  ['GET', '/admin/api/v1/groups', 'no such path'],
  ['POST', '/costs', 'only GET'],
  ['GET', '/admin/api/costs?periode=month', 'no parameter periode'],
  ['PUT', '/leases', 'only'],
])('finds that %s %s is not served', (method, path, fault) => {
  expect(faultOf(method, path)).toContain(fault);
});

it('reads routes out of prose and commands', () => {
  const quotes = QUOTING_PAGES.flatMap(quotesOf);
  expect(quotes.flatMap(namedIn).length).toBeGreaterThan(80);
  const curls = quotes.flatMap(curlsIn);
  expect(curls.length).toBeGreaterThan(60);
  expect(curls).toContainEqual(['POST', '/admin/api/groups/GROUP/relearn']);
  expect(curls).toContainEqual(['PUT', '/leases/$LEASE']);
  expect(curls).toContainEqual(['GET', '/healthz']);
});

// The table of routes in docs/admin-api.md against the routes themselves: addresses and roles.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { AdminRoute } from '../../../src/admin/route.ts';
import { ADMIN_ROUTES } from '../../../src/admin/routes.ts';

/** Addresses of a cell, as in `PUT`, `DELETE /a/{id}`, `/b`: a lone method is of the next path, a lone path of the method before. */
function addressesIn(cell: string): string[] {
  const found: string[] = [];
  let methods: string[] = [];
  let before = { method: '', path: '' };
  for (const [, text = ''] of cell.matchAll(/`([^`]+)`/g)) {
    const [, method = '', path = ''] = /^([A-Z]*) ?(.*)$/.exec(text) ?? [];
    if (path === '') methods.push(method);
    else if (method === '') {
      before = { ...before, path: before.path.replace(/\/[^/]*$/, path) };
      found.push(`${before.method} ${before.path}`);
    } else {
      found.push(...[...methods, method].map((each) => `${each} ${path}`));
      methods = [];
      before = { method, path };
    }
  }
  return found;
}

it('has every route with its role, but for those that describe the API itself', () => {
  const page = readFileSync('docs/admin-api.md', 'utf8');
  const rows = [...page.matchAll(/^\| (`(?:GET|PUT|PATCH|POST|DELETE)\b[^|]*) \| ([a-z, ]+) \|/gm)];
  const reported = rows.flatMap(([, cell = '', roles = '']) => {
    const each = roles.split(', ');
    return addressesIn(cell).map((address, at) => `${address}: ${each[at] ?? each[0]}`);
  });
  const routes = Object.values<AdminRoute>(ADMIN_ROUTES).filter(({ tag }) => tag !== 'about');
  expect(reported.toSorted()).toEqual(
    routes.map(({ method, path, role }) => `${method} ${path}: ${role}`).toSorted(),
  );
});

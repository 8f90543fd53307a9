// docs/client-headers.md names every header of clients that Headgate reads.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { SESSION_HEADERS } from '../../../src/call/request/caller-headers.ts';

const page = readFileSync('docs/client-headers.md', 'utf8');

/** Names of headers in a source, as texts in quotes. */
function headersIn(path: string): string[] {
  const names = readFileSync(path, 'utf8').matchAll(/'((?:x|grpc|amz|session|thread)-[a-z-]+)'/g);
  return [...names].map(([, name = '']) => name);
}

it.each(['src/call/request/caller-headers.ts', 'src/call/request/caller-headers.ts'])(
  'has the headers that %s reads',
  (path) => {
    const names = headersIn(path);
    expect(names.length).toBeGreaterThan(3);
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  },
);

it('has the headers of sessions in their order', () => {
  const [, cell = ''] = /^\| headers \| (.*) \|$/m.exec(page) ?? [];
  expect(cell.split(', ')).toEqual(SESSION_HEADERS.map((name) => `\`${name}\``));
});

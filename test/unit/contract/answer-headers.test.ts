import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { addCors, corsHeaders } from '../../../src/call/answer/response-headers.ts';
import { errorResponse } from '../../../src/call/results/wire-error.ts';
import { CANARY_MODEL_PREFIX } from '../../../src/config/document-changes.ts';
import { ANSWER_HEADERS, DIALECTS } from '../../../src/contract/http.ts';
import { REASONS, type Reason } from '../../../src/contract/reasons.ts';
import { callerResponseHeaders } from '../../../src/upstream/transfer/headers.ts';

const NAMES = Object.keys(ANSWER_HEADERS);
const OURS = NAMES.filter((name) => name.startsWith('headgate-'));

/** Sent to the admin API by the dashboard alone. */
const OF_THE_DASHBOARD = 'headgate-admin';

/** Names in the first column of the table under a heading of docs/http.md. */
function documented(heading: string): string[] {
  const page = readFileSync('docs/http.md', 'utf8');
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  const cells = [...section.matchAll(/^\| (`[^|]*) \|/gm)].map(([, cell = '']) => cell);
  return cells.flatMap((cell) => [...cell.matchAll(/`([a-z-]{4,})/g)].map(([, name = '']) => name));
}

describe('the table of answer headers', () => {
  it('has the rows of docs/http.md', () => {
    expect(documented('Response headers').toSorted()).toEqual(NAMES.toSorted());
  });

  it('knows every header with our name in the source that callers do not send', () => {
    const sent = documented('Request headers').filter((name) => name.startsWith('headgate-'));
    expect(sent).toHaveLength(10);
    const known = new Set([...NAMES, ...sent, OF_THE_DASHBOARD, CANARY_MODEL_PREFIX]);
    const named = globSync('src/**/*.ts').flatMap((path) => {
      const literals = readFileSync(path, 'utf8').matchAll(/(['`])(headgate-[\w-]+)\1/g);
      return [...literals].map(([, , name = '']) => `${path}: ${name}`);
    });
    expect(named.length).toBeGreaterThan(OURS.length);
    expect(named.filter((each) => !known.has(each.split(': ')[1] ?? ''))).toEqual([]);
  });

  it.each(OURS)('lets no upstream say %s', (name) => {
    expect(callerResponseHeaders(new Headers([[name, 'x']])).has(name)).toBe(false);
  });

  it('lets an upstream say what is not ours alone', () => {
    const theirs = new Headers(NAMES.map((name) => [name, 'x']));
    const kept = [...callerResponseHeaders(theirs).keys()];
    expect(kept).toEqual(NAMES.filter((name) => !OURS.includes(name)).toSorted());
  });
});

test('scripts of a configured origin read what callers are told, and by what providers know a call', () => {
  const origin = 'https://app.test';
  const headers = new Headers();
  const cors = corsHeaders(new Request('https://a.test', { headers: { origin } }), [origin]);
  addCors(headers, cors ?? new Headers());
  expect(headers.get('access-control-expose-headers')).toBe(
    'headgate-groups, headgate-member, headgate-lease, headgate-usage, headgate-wait-ms, headgate-waited-for, headgate-tries, headgate-missing, headgate-reason, retry-after, retry-after-ms, x-should-retry, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, x-request-id, request-id',
  );
});

test.each(DIALECTS)('a refusal in the dialect %s has no other headers', (dialect) => {
  for (const reason of Object.keys(REASONS) as Reason[]) {
    const { headers } = errorResponse(dialect, { reason, message: 'No.', attempts: 2 });
    expect([...NAMES, 'content-type']).toEqual(expect.arrayContaining([...headers.keys()]));
  }
});

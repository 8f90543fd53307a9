import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { PROVIDERS, providerNamed, providerOf } from '../../../src/providers/catalog.ts';
import type { Provider } from '../../../src/providers/provider.ts';
import {
  classifyRefusal,
  type UpstreamAnswer,
} from '../../../src/upstream/refusal/classify-refusal.ts';
import { readLimitHints } from '../../../src/upstream/refusal/limit-headers.ts';
import { refusalRules, type RefusalRow } from '../../../src/upstream/refusal/refusal-table.ts';
import { ALL_SEEN } from './all-seen.ts';
import { answer, answerOf, NOW } from './seen-refusal.ts';

/** Rules that hold for every provider, and all that was recorded of any. */

const REFUSALS = ALL_SEEN.flatMap(({ refusals = [] }) => refusals);
const PHRASES = ALL_SEEN.flatMap(({ phrases = [] }) => phrases);
const HEADERS = ALL_SEEN.flatMap(({ headers = {} }) => Object.entries(headers));
const CODES = ALL_SEEN.flatMap(({ codes = {} }) =>
  Object.entries(codes).flatMap(([meaning, listed]) => {
    const [provider = '', expected = ''] = meaning.split(': ');
    return listed.split(' ').map((code) => [code, provider, expected] as const);
  }),
);

const FINAL = ['quota', 'never_fits', 'long_window'];

function said(upstreamId: string, error: object): UpstreamAnswer {
  return answer({ upstreamId, body: JSON.stringify({ error }) });
}

function meaningOf(given: UpstreamAnswer): string {
  const refusal = classifyRefusal(given);
  return refusal === null ? 'none' : `${refusal.signal.kind}, ${refusal.scope}`;
}

function isSourced({ source, date }: { readonly source: string; readonly date: string }): void {
  expect(new URL(source).protocol).toBe('https:');
  expect(isDay(date)).toBe(true);
}

function isDay(date: string): boolean {
  return new Date(date).toISOString().slice(0, 10) === date;
}

function isLower(names: readonly string[]): void {
  expect(names).toEqual(names.map((name) => name.toLowerCase()));
}

test('every provider of every file is listed', () => {
  const folder = new URL('../../../src/providers/', import.meta.url);
  const code = readdirSync(folder)
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(new URL(name, folder), 'utf8'))
    .join('');
  const ids = [...code.matchAll(/^export const \w+ = \{\n {2}id: '([^']+)',\n/gm)];
  expect(ids.map(([, id = '']) => id).toSorted()).toEqual(PROVIDERS.map((provider) => provider.id));
  expect([...code.matchAll(/satisfies Provider;/g)]).toHaveLength(PROVIDERS.length);
});

test('no id, alias or base URL is of two', () => {
  const names = PROVIDERS.flatMap(({ id, aliases = [] }) => [id, ...aliases]);
  expect(new Set(names).size).toBe(names.length);
  const urls = PROVIDERS.flatMap(({ baseUrl, openaiAt }) =>
    baseUrl === null ? [] : `${baseUrl}${openaiAt ?? ''}`,
  );
  expect(new Set(urls).size).toBe(urls.length);
});

test('what selects an account is named in lower case, with its source', () => {
  const all = PROVIDERS.flatMap(({ accountSelectors }) => accountSelectors ?? []);
  expect(all.length).toBeGreaterThan(0);
  all.forEach(isSourced);
  isLower(all.flatMap(({ headers, parameters = [] }) => [...headers, ...parameters]));
});

describe.each(PROVIDERS)('$id', (provider: Provider) => {
  const { id, baseUrl, hosts } = provider;

  test('is found by its id and its host', () => {
    expect(providerNamed(id)).toBe(provider);
    expect(baseUrl !== null || hosts !== undefined).toBe(true);
    if (baseUrl === null) return;
    const { host } = new URL(baseUrl);
    expect(baseUrl).toBe(`https://${host}`);
    // The endpoint of a plan is at the host of its maker.
    expect(providerOf({ id: 'mine', baseUrl: baseUrl + (provider.openaiAt ?? '') })).toBe(provider);
    expect(providerOf({ id, baseUrl })).toBe(provider);
    expect(
      PROVIDERS.filter((other) => other.hosts?.test(host) === true && other !== provider),
    ).toEqual([]);
  });

  test('says where its figures are from and when they held', () => {
    const { limits = [], counts = [], plans = [], limitHeaders } = provider;
    for (const row of [...limits, ...counts, ...plans]) isSourced(row);
    if (limitHeaders === undefined) return;
    expect(limitHeaders.source).not.toBe('');
    expect(isDay(limitHeaders.date)).toBe(true);
  });

  test('is written as it is compared', () => {
    const { aliases = [], keyPrefixes = [], models = [], limits = [], counts = [] } = provider;
    for (const names of [[id], aliases, keyPrefixes, models]) isLower(names);
    const prefixes = limits.flatMap(({ modelPrefix, formerPrefixes = [] }) => [
      modelPrefix,
      ...formerPrefixes,
    ]);
    isLower(prefixes);
    expect(new Set(prefixes).size).toBe(prefixes.length);
    for (const { maxConcurrency } of limits) expect(maxConcurrency).toBeGreaterThan(0);
    const counted = counts.map(({ models: of = [] }) => of.join(' '));
    isLower(counted);
    expect(new Set(counted).size).toBe(counted.length);
    for (const row of counts) expect(row.counts.outputWeight ?? 1).toBeGreaterThanOrEqual(1);
    isLower((provider.refusals ?? []).flatMap(({ codes = [] }) => codes));
  });

  test('suggests what a group may have as its limits, each plan of a model once', () => {
    const { plans = [] } = provider;
    isLower(plans.flatMap(({ models = [] }) => models));
    const named = plans.flatMap(({ plan, models = [''] }) => models.map((of) => plan + of));
    expect(new Set(named).size).toBe(named.length);
    for (const { limits, models = [] } of plans) {
      expect(Object.keys(limits)).not.toEqual([]);
      const group = { name: 'taken-over', match: { models }, limits };
      expect(groupSchema.parse(group).limits).toMatchObject(limits);
    }
  });

  test('has rows of refusals that each tell something, as was recorded', () => {
    const { refusals = [], quirks = {} } = provider;
    const isIts = (upstreamId: string, host = 'upstream.test') => {
      const of = providerOf({ id: upstreamId, baseUrl: `https://${host}` });
      return of?.refusals === provider.refusals;
    };
    const recorded = [
      ...REFUSALS.filter(({ upstreamId, host }) => isIts(upstreamId, host)).map(answerOf),
      ...CODES.flatMap(([code, name]) => (isIts(name) ? [said(name, { code })] : [])),
      ...PHRASES.flatMap(([name, message]) => (isIts(name) ? [said(name, { message })] : [])),
    ];
    const readBy = (rows: readonly RefusalRow[]) => {
      const rules = refusalRules(rows, quirks);
      return recorded.map((given) => meaningOf({ ...given, rules }));
    };
    const whole = readBy(refusals);
    for (const [index, row] of refusals.entries()) {
      for (const less of withoutOne(row)) {
        expect(readBy(refusals.with(index, less))).not.toEqual(whole);
      }
    }
  });

  test('has limit headers that were recorded', () => {
    const { limitHeaders } = provider;
    if (limitHeaders === undefined) return;
    const of = HEADERS.map(([name]) => providerNamed(name)?.limitHeaders?.limits);
    expect(of).toContain(limitHeaders.limits);
    for (const probe of limitHeaders.probes) {
      const headers = new Headers({ [probe]: '3' });
      const profile = { ...limitHeaders, isReliable: true };
      expect(readLimitHints(headers, profile, NOW)).toMatchObject([{ remaining: 3 }]);
    }
  });
});

/** A row without each of its codes, or without its only test. */
function withoutOne(row: RefusalRow): readonly RefusalRow[] {
  const { kind, scope, codes } = row;
  if (codes === undefined) return [{ kind, scope }];
  return codes.map((code) => ({ ...row, codes: codes.filter((other) => other !== code) }));
}

describe('a refusal as it was recorded', () => {
  test.each(REFUSALS)('$name ($upstreamId, $status): $kind', (row) => {
    expect(classifyRefusal(answerOf(row))).toMatchObject({
      signal: {
        kind: row.kind,
        retryAfterMs: row.retryAfterMs ?? null,
        slotsMax: row.slotsMax ?? null,
      },
      scope: row.scope ?? (row.kind === 'never_fits' ? 'call' : 'model'),
      isFinal: FINAL.includes(row.kind),
    });
  });
});

describe('a code alone tells', () => {
  test.each(CODES)('%s at its provider, and nobody else: %s, %s', (code, provider, expected) => {
    expect(meaningOf(said(provider, { code, message: 'No.' }))).toBe(expected);
    expect(meaningOf(said('openai', { code, message: 'No.' }))).toBe('unknown, model');
  });
});

describe('words alone tell', () => {
  test.each(PHRASES)('at %s, "%s": %s, and not elsewhere', (provider, message, expected) => {
    expect(meaningOf(said(provider, { message }))).toBe(expected);
    expect(meaningOf(said('openai', { message }))).not.toBe(expected);
  });
});

describe('the limit headers of', () => {
  test.each(HEADERS)('%s are read', (provider, [headers, ...hints]) => {
    const profile = providerNamed(provider)?.limitHeaders;
    expect(profile).toBeDefined();
    if (profile === undefined) return;
    const read = readLimitHints(new Headers(headers), { ...profile, isReliable: true }, NOW);
    expect(read).toEqual(
      hints.map(([dimension, windowMs, limit, remaining, resetMs]) => ({
        dimension,
        windowMs,
        limit,
        remaining,
        resetMs,
      })),
    );
  });
});

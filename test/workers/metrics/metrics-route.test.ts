/**
 * The metrics as Prometheus scrapes them, and whether the dashboard and the alert rules ask for what there
 * is. Every metric is made to appear by real calls of pools, so a name that no query can find is a failure.
 */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import rulesText from '../../../ops/prometheus/headgate-alerts.yaml?raw';
import dashboard from '../../../ops/grafana/headgate.json';
import { REASON_NAMES } from '../../../src/contract/reasons.ts';
import { directoryOf } from '../../../src/env.ts';
import { createApp } from '../../../src/http/app.ts';
import { PARTITIONS_MAX } from '../../../src/http/metrics.ts';
import { ALL_FAMILIES } from '../../unit/metrics/all-families.ts';
import { parseExposition, type ParsedFamily } from '../../unit/metrics/exposition-parser.ts';
import { selectorsOf } from '../../unit/metrics/queries.ts';
import { pool, request } from '../support/pool.ts';
import { call, env } from '../support/worker.ts';
import { haveEveryMetric } from './scene.ts';
import { OUTCOMES, REFUSAL_KINDS, REJECTIONS } from './words.ts';

const TOKEN = 'test-metrics-token';

function scrape(headers: Record<string, string> = {}): Promise<Response> {
  return call('/metrics', { headers: { authorization: `Bearer ${TOKEN}`, ...headers } });
}

async function scraped(): Promise<ParsedFamily[]> {
  return parseExposition(await (await scrape()).text());
}

function valueOf(
  all: readonly ParsedFamily[],
  name: string,
  labels: Record<string, string>,
): number {
  const samples = all.flatMap((family) => family.samples);
  const found = samples.filter(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  if (found.length !== 1) {
    throw new Error(`${name} ${JSON.stringify(labels)}: ${found.length} series`);
  }
  return found[0]?.value ?? Number.NaN;
}

beforeAll(() => haveEveryMetric());

describe('who may scrape', () => {
  it.each([
    ['nobody', {}, 401],
    ['a wrong token', { authorization: 'Bearer nonsense' }, 401],
    ['a token of the wrong kind', { authorization: `Basic ${TOKEN}` }, 401],
    ['the METRICS_TOKEN', { authorization: `Bearer ${TOKEN}` }, 200],
    ['the ADMIN_TOKEN', { authorization: 'Bearer test-admin-token' }, 200],
  ])('%s', async (_who, headers, status) => {
    const response = await call('/metrics', { headers });
    expect(response.status).toBe(status);
    const challenge = status === 401 ? 'Bearer realm="headgate-metrics"' : null;
    expect(response.headers.get('www-authenticate')).toBe(challenge);
    await response.body?.cancel();
  });

  const { ADMIN_TOKEN: _admin, METRICS_TOKEN: _metrics, ...bare } = env;
  it.each([
    ['none is set', bare],
    ['empty ones are', { ...bare, ADMIN_TOKEN: '', METRICS_TOKEN: '' }],
  ])('is told what to set where %s', async (_what, closed) => {
    const context = { waitUntil: () => {}, passThroughOnException: () => {}, props: {} };
    const asked = new Request('https://headgate.test/metrics', {
      headers: { authorization: 'Bearer ' },
    });
    const response = await createApp().fetch?.(
      asked as never,
      closed,
      context as unknown as ExecutionContext,
    );
    expect(response?.status).toBe(403);
    expect(await response?.json()).toMatchObject({
      detail: expect.stringContaining('wrangler secret put METRICS_TOKEN'),
    });
  });
});

describe('the exposition', () => {
  it('tells what happened', async () => {
    const all = await scraped();
    const labels = { group: 'watched', partition: '' };
    const values = {
      headgate_slots_limit: 1,
      headgate_slots_in_use: 0,
      headgate_slots_lent: 0,
      headgate_grants_total: 2,
      headgate_regrants_total: 1,
      headgate_cost_usd_total: 0.25,
      headgate_pool_up: 1,
      headgate_wait_seconds_count: 2,
    };
    for (const [name, value] of Object.entries(values)) {
      expect([name, valueOf(all, name, labels)]).toEqual([name, value]);
    }
    const by = (name: string, more: Record<string, string>) =>
      valueOf(all, name, { ...labels, ...more });
    expect(by('headgate_rejections_total', { reason: 'busy' })).toBe(1);
    expect(by('headgate_upstream_refusals_total', { kind: 'quota' })).toBe(1);
    expect(by('headgate_leases_ended_total', { outcome: 'expired' })).toBe(1);
    expect(by('headgate_calls_cut_total', { reason: 'idle' })).toBe(1);
    expect(by('headgate_tokens_total', { direction: 'input' })).toBe(7);
    expect(by('headgate_breaker_state', { state: 'closed' })).toBe(1);
    expect(by('headgate_rate_limit', { limit: 'rpm' })).toBe(100);
    expect(by('headgate_budget_spent_usd', { period: 'day' })).toBe(0.25);
    expect(by('headgate_budget_limit_usd', { period: 'day' })).toBe(100);
    // No budget, no series: there is nothing to divide by.
    expect(() => by('headgate_budget_limit_usd', { period: 'month' })).toThrow('0 series');
    expect(valueOf(all, 'headgate_budget_limit_usd', { group: 'key:paid', period: 'month' })).toBe(
      7,
    );
    expect(by('headgate_warnings_total', { kind: 'quota_exhausted' })).toBe(1);
    const ofKey = { group: 'key:paid', kind: 'lease' };
    expect(valueOf(all, 'headgate_slots_in_use_by_kind', ofKey)).toBe(1);
    const refusal = { reason: 'key_forbidden', key: 'paid', team: '', upstream: 'openai' };
    expect(valueOf(all, 'headgate_refusals_total', refusal)).toBe(3);
  });

  it('tells of each member of a group', async () => {
    const all = await scraped();
    const of = (name: string, more: Record<string, string>) =>
      valueOf(all, `headgate_member_${name}`, { group: 'keys', ...more });
    expect(of('slots_limit', { member: 'a' })).toBe(3);
    expect(of('slots_in_use', { member: 'a' })).toBe(0);
    expect(of('grants_total', { member: 'a' })).toBe(2);
    expect(of('grants_total', { member: 'b' })).toBe(1);
    expect(of('refusals_total', { member: 'a' })).toBe(1);
    expect([of('out', { member: 'a' }), of('out', { member: 'b' })]).toEqual([1, 0]);
    expect(of('tokens_total', { member: 'a', direction: 'output' })).toBe(3);
    expect(of('cost_usd_total', { member: 'a' })).toBe(0.5);
    expect(valueOf(all, 'headgate_affinity_total', { group: 'keys', outcome: 'kept' })).toBe(0);
  });

  it('holds every metric, and none that is not described', async () => {
    const names = (await scraped()).map(({ name }) => name.replace(/_total$/, ''));
    expect(names.toSorted()).toEqual(ALL_FAMILIES.map(({ name }) => name).toSorted());
  });

  it('is in the text format of Prometheus, whatever is asked for, and kept nowhere', async () => {
    const response = await scrape({ accept: 'application/openmetrics-text; version=1.0.0' });
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(parseExposition(await response.text()).length).toBeGreaterThan(10);
  });

  it('has series of its own for a bounded number of partitions, and one set for the rest', async () => {
    const directory = directoryOf(env);
    const names = Array.from({ length: PARTITIONS_MAX + 3 }, (_, index) => `p${100 + index}`);
    for (const partition of names) {
      await directory.list({ group: 'split', partition });
      const fields = { partition, caller: partition };
      const answer = await pool(`split#${partition}`).acquire(request('split', 't', fields));
      if (answer.kind !== 'granted') throw new Error(answer.kind);
      await answer.lease.release('success', 200);
    }
    const all = await scraped();
    const granted = all.find(({ name }) => name === 'headgate_grants_total')?.samples ?? [];
    const ofSplit = granted.filter(({ labels }) => labels['group'] === 'split');
    expect(ofSplit).toHaveLength(PARTITIONS_MAX + 1);
    expect(ofSplit.at(-1)).toMatchObject({ labels: { partition: 'OTHER' }, value: 3 });
    expect(ofSplit[0]).toMatchObject({ labels: { partition: 'p100' }, value: 1 });
  });

  it('says of a pool that does not answer that it is down, and goes on', async () => {
    const { GroupObject } = await import('../../../src/group/group-object.ts');
    const spy = vi.spyOn(GroupObject.prototype, 'metrics').mockRejectedValueOnce(new Error('away'));
    const all = await scraped();
    spy.mockRestore();
    const up = all.find(({ name }) => name === 'headgate_pool_up')?.samples ?? [];
    expect(up.filter(({ value }) => value === 0)).toHaveLength(1);
    expect(up.filter(({ value }) => value === 1).length).toBeGreaterThan(0);
  });
});

interface MetricsRouteRule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: {
    readonly summary: string;
    readonly description: string;
    readonly runbook_url: string;
  };
}

const RULES = (parse(rulesText) as { groups: { rules: MetricsRouteRule[] }[] }).groups.flatMap(
  ({ rules }) => rules,
);

const QUERIES = [
  ...RULES.map(({ alert, expr }) => [`alert ${alert}`, expr] as const),
  ...dashboard.panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => [`panel ${title}`, expr] as const),
  ),
  ...dashboard.annotations.list.map(({ name, expr }) => [`annotation ${name}`, expr] as const),
];

/** Values of labels that are words of ours. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  headgate_scopes_stopped: ['pause', 'breaker', 'ceiling'],
  headgate_upstream_refusals_total: Object.keys(REFUSAL_KINDS),
  headgate_rejections_total: Object.keys(REJECTIONS),
  headgate_leases_ended_total: [...Object.keys(OUTCOMES), 'expired'],
  headgate_refusals_total: REASON_NAMES,
};

describe('the dashboard and the alert rules', () => {
  let once: Promise<ParsedFamily[]> | null = null;

  it.each(QUERIES)('%s asks for what there is', async (_what, expression) => {
    once ??= scraped();
    const samples = (await once).flatMap((family) => family.samples);
    const selectors = selectorsOf(expression);
    expect(selectors).not.toEqual([]);
    for (const { metric, matchers, by } of selectors) {
      const series = samples.filter(({ name }) => name === metric);
      const labels = new Set(series.flatMap((sample) => Object.keys(sample.labels)));
      expect([metric, series.length > 0]).toEqual([metric, true]);
      for (const label of [...by, ...matchers.map((matcher) => matcher.label)]) {
        expect([metric, [...labels]]).toEqual([metric, expect.arrayContaining([label])]);
      }
      for (const { label, values } of matchers) {
        const known = WORDS[metric] ?? series.map((sample) => sample.labels[label]);
        expect([metric, known]).toEqual([metric, expect.arrayContaining([...(values ?? [])])]);
      }
    }
  });

  it.each(RULES.map((rule) => [rule.alert, rule] as const))(
    '%s can be acted upon',
    (_name, rule) => {
      expect(rule.alert).toMatch(/^Headgate[A-Z][A-Za-z]+$/);
      expect(['critical', 'warning', 'info']).toContain(rule.labels.severity);
      expect(rule.annotations.summary.length).toBeGreaterThan(10);
      expect(rule.annotations.description.length).toBeGreaterThan(10);
      const depth = rule.expr
        .split('')
        .reduce((open, char) => open + Number(char === '(') - Number(char === ')'), 0);
      expect(depth).toBe(0);
    },
  );

  it('lead to who is behind a line, in the time that is shown', () => {
    const links = dashboard.panels.flatMap((panel) =>
      'fieldConfig' in panel && 'links' in panel.fieldConfig.defaults
        ? panel.fieldConfig.defaults.links.map(({ url }) => ({ url, targets: panel.targets }))
        : [],
    );
    expect(links.length).toBeGreaterThan(5);
    for (const { url, targets } of links) {
      expect(url).toContain('${headgate}/admin/groups/${__field.labels.group}?');
      // Else the link has no name of a group.
      for (const { expr } of targets) expect(expr).toMatch(/\bby \((\w+, )*group\b/);
    }
    for (const { url } of [...links, ...dashboard.links]) {
      expect(url).toContain('?from=${__from:date:iso}&to=${__to:date:iso}');
    }
    expect(dashboard.templating.list.map(({ name }) => name)).toContain('headgate');
  });

  it('show every metric somewhere', () => {
    const asked = new Set(
      QUERIES.flatMap(([, expression]) => selectorsOf(expression)).map(({ metric }) =>
        metric.replace(/_(total|bucket)$/, ''),
      ),
    );
    const forDiagnosis = [
      'pools',
      'pools_left_out',
      'departures',
      'moves',
      'leases_resurrected',
      'dry_run_would_wait',
      'lease_reports',
    ];
    const unseen = ALL_FAMILIES.map(({ name }) => name).filter((name) => !asked.has(name));
    expect(unseen.toSorted()).toEqual(forDiagnosis.map((name) => `headgate_${name}`).toSorted());
  });
});

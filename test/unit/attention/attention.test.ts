// The rules for what needs a person: which one holds, in which words, and in which order.
import { describe, expect, it } from 'vitest';
import { attentionOf, bounded } from '../../../src/attention/attention.ts';
import type { AttentionFacts } from '../../../src/attention/serving.ts';
import {
  ATTENTION_MAX,
  type Attention,
  type Warning,
  type WarningKind,
} from '../../../src/contract/attention.ts';
import { ATTENTION_RULES } from '../../../src/contract/status-words.ts';
import type { GroupStatus } from '../../../src/contract/group-status.ts';
import type { RefusalCount } from '../../../src/contract/reasons.ts';
import type { Lately, UpstreamCallsStatus } from '../../../src/contract/status.ts';
import { groupStatus } from '../dashboard/group-status.ts';

const NOW = Date.parse('2026-11-28T10:10:00Z');
const ago = (ms: number): string => new Date(NOW - ms).toISOString();
const inMs = (ms: number): string => new Date(NOW + ms).toISOString();
const MINUTE = 60_000;

const NO_FACTS: AttentionFacts = {
  now: NOW,
  groups: [],
  refusals: [],
  warnings: [],
  secrets: [],
  configWarnings: [],
  budgets: new Map(),
};

const found = (facts: Partial<AttentionFacts>): Attention[] =>
  attentionOf({ ...NO_FACTS, ...facts });

const of = (changes: Partial<GroupStatus>, facts: Partial<AttentionFacts> = {}): Attention[] =>
  found({
    groups: [groupStatus({ name: 'chat', ...changes } as Parameters<typeof groupStatus>[0])],
    ...facts,
  });

function failing(changes: Partial<Lately>): Lately {
  return {
    served: 0,
    served_at: null,
    failing_since: ago(10 * MINUTE),
    failed_at: ago(0),
    is_failing: true,
    refusals: {},
    rejected: {},
    ended: {},
    ...changes,
  };
}

type AttentionLastRefusal = UpstreamCallsStatus['last_refusals'][number];

function upstream(
  id: string,
  kind: string,
  reported: Partial<Pick<AttentionLastRefusal, 'at' | 'status' | 'message'>> = {},
): GroupStatus['upstreams'][number] {
  return {
    id,
    in_flight: 0,
    last_call_at: ago(0),
    day_granted: 1,
    day_refusals: {},
    spend: null,
    last_refusals: [{ kind, at: ago(1_000), retry_after_ms: null, model: null, ...reported }],
    state: 'ok',
    paused_until: null,
    breaker_until: null,
    limit: 5,
  };
}

function warning(kind: WarningKind, figures: Warning['figures'] = {}): Warning {
  const at = ago(2 * MINUTE);
  return { id: kind, at, kind, group: 'chat', partition: null, message: 'It is so.', figures };
}

function refusal(
  reason: RefusalCount['reason'],
  changes: Partial<RefusalCount> = {},
): RefusalCount {
  return {
    reason,
    key: null,
    key_kind: null,
    team: null,
    group: null,
    upstream: null,
    model: null,
    count: 1,
    first_at: ago(5 * MINUTE),
    last_at: ago(1_000),
    message: 'It is so.',
    request_ids: [],
    ...changes,
  };
}

const QUOTA = { status: 429, message: 'quota exceeded' };

describe('a group that serves nothing', () => {
  it('says first which upstream refuses, how often, and with which words', () => {
    const [first, ...others] = of({
      lately: failing({ refusals: { quota: 276 } }),
      upstreams: [upstream('openai', 'quota', QUOTA)],
    });
    expect(first).toMatchObject({
      rule: 'refused_by_upstream',
      subject: { kind: 'group', id: 'chat' },
      since: ago(10 * MINUTE),
      count: 276,
      says: "`openai` refuses every call: 276 × 429 'quota exceeded' in 10 minutes.",
      words: 'quota exceeded',
    });
    expect(others).toEqual([]);
  });

  it('says what a refusal without a message means, and cuts a long one', () => {
    const bare = { upstreams: [upstream('openai', 'requests', { status: 429 })] };
    const lately = failing({ refusals: { requests: 1 }, failing_since: ago(MINUTE) });
    expect(of({ lately, ...bare })[0]?.says).toBe(
      '`openai` refuses every call: 1 × 429 (too many requests) in 1 minute.',
    );
    const long = {
      upstreams: [upstream('openai', 'requests', { ...QUOTA, message: 'x'.repeat(300) })],
    };
    expect(of({ lately, ...long })[0]?.says.length).toBeLessThan(160);
  });

  it('advises no higher limit where the upstream is overloaded', () => {
    const lately = failing({ refusals: { overload: 9, error: 1 } });
    const [first] = of({ lately, upstreams: [upstream('openai', 'overload', { status: 503 })] });
    expect(first).toMatchObject({
      rule: 'refused_by_upstream',
      advice: 'Check the status page of the provider, or send the calls to another upstream.',
    });
  });

  it('is refused by its upstream only if half of the failures are refusals', () => {
    const rule = (lately: Lately): string[] => of({ lately }).map((one) => one.rule);
    const refusals = { quota: 5, error: 5 };
    expect(rule(failing({ refusals }))).toEqual(['refused_by_upstream']);
    expect(rule(failing({ refusals, rejected: { queue_timeout: 1 } }))).toEqual(['nothing_served']);
  });

  it('is refused by its upstream from five refusals on, whatever its state', () => {
    const rules = (quota: number): string[] =>
      of({
        lately: failing({ refusals: { quota }, failing_since: ago(MINUTE) }),
        state: 'full',
      }).map(({ rule }) => rule);
    expect([rules(4), rules(5)]).toEqual([[], ['refused_by_upstream']]);
  });

  it('names all upstreams that refuse', () => {
    const upstreams = [upstream('openai', 'quota', QUOTA), upstream('groq', 'quota', QUOTA)];
    expect(of({ lately: failing({ refusals: { quota: 9 } }), upstreams })[0]?.says).toBe(
      "`openai` and `groq` refuse every call: 9 × 429 'quota exceeded' in 10 minutes.",
    );
  });

  it('says soon that every key is refused', () => {
    const lately = failing({ answered_errors: { '401': 5 }, failing_since: ago(MINUTE) });
    expect(
      of({ lately, upstreams: [upstream('openai', 'requests', { at: ago(20 * MINUTE) })] }),
    ).toMatchObject([
      {
        rule: 'refused_by_upstream',
        count: 5,
        says: '`openai` answers every call with an error: 5 × 401 (the key is refused) in 1 minute.',
        advice: 'Set a valid key for the upstream, or correct the provider keys of the clients.',
      },
    ]);
    expect(of({ lately: { ...lately, answered_errors: { '401': 4 } } })).toEqual([]);
  });

  it('says of a key that it fails, unless the group of the upstream has an entry', () => {
    const lately = failing({ answered_errors: { '401': 9 } });
    const at = (name: string, changes: Partial<GroupStatus>) =>
      groupStatus({ name, upstreams: [upstream('openai', 'x')], ...changes } as Parameters<
        typeof groupStatus
      >[0]);
    const key = at('key:alpha', { lately });
    const subjects = (groups: GroupStatus[]) => found({ groups }).map(({ subject: { id } }) => id);
    expect(subjects([at('chat', {}), key])).toEqual(['alpha']);
    expect(subjects([at('chat', { lately }), key])).toEqual(['chat']);
    const elsewhere = at('groq', { lately, upstreams: [upstream('groq', 'x')] });
    expect(subjects([elsewhere, key])).toEqual(['alpha', 'groq']);
  });

  it.each<[string, Partial<GroupStatus>, string]>([
    [
      'a wrong path',
      {
        lately: failing({ answered_errors: { '404': 12, '400': 1 } }),
        upstreams: [upstream('openai', 'requests', { at: ago(60 * MINUTE) })],
      },
      '`openai` answers every call with an error: 12 × 404 (the path or the model is unknown) and 1 × 400 (the requests are invalid) in 10 minutes. No call was served for 10 minutes.',
    ],
    [
      'failures of the upstream',
      {
        lately: failing({ refusals: { error: 12 }, ended: { failed: 12 } }),
        upstreams: [upstream('openai', 'error', { status: 503, message: 'bad gateway' })],
      },
      "`openai` fails every call: 12 × 503 'bad gateway' in 10 minutes. No call was served for 10 minutes.",
    ],
    [
      'refusals of Headgate',
      { lately: failing({ rejected: { queue_timeout: 7, never_fits: 1 } }) },
      'Headgate rejects every call: 7 × `queue_timeout` and 1 × `never_fits`. No call was served for 10 minutes.',
    ],
    [
      'a provider that hangs',
      { lately: failing({ ended: { cancelled: 4 } }) },
      'No response arrives in time: 4 clients disconnected. No call was served for 10 minutes.',
    ],
  ])('for five minutes by %s', (_title, changes, says) => {
    expect(of(changes)).toMatchObject([{ rule: 'nothing_served', says }]);
    const lately = { ...failing({}), ...changes.lately, failing_since: ago(4 * MINUTE) };
    expect(of({ ...changes, lately })).toEqual([]);
  });

  it('has the largest cause first', () => {
    const says = (changes: Partial<Lately>): string | undefined =>
      of({ lately: failing(changes) })[0]?.says.replace(/[:;].*/s, '');
    const cancelled = { cancelled: 4 };
    expect(says({ ended: cancelled, rejected: { queue_timeout: 3 } })).toBe(
      'No response arrives in time',
    );
    expect(says({ refusals: { error: 3 }, rejected: { queue_timeout: 4 } })).toBe(
      'Headgate rejects every call',
    );
    expect(says({ refusals: { error: 3 }, answered_errors: { '404': 3 } })).toBe(
      'The upstream fails every call',
    );
  });

  it('has the failures of the upstream as the cause of an open breaker', () => {
    const rejected = { breaker_open: 900, upstream_unreachable: 3 };
    expect(of({ lately: failing({ refusals: { error: 3 }, rejected }) })[0]?.says).toMatch(
      /^The upstream fails every call: 3 × /,
    );
    expect(of({ lately: failing({ rejected }) })[0]?.says).toMatch(
      /^Headgate rejects every call: 900 × `breaker_open` and 3 × /,
    );
  });

  it('has answers that broke off', () => {
    expect(of({ lately: failing({ ended: { failed: 9, cancelled: 1 } }) })).toMatchObject([
      {
        rule: 'nothing_served',
        count: 10,
        says: 'No response completes: 9 responses were cut off. No call was served for 10 minutes.',
      },
    ]);
  });

  it('has an open breaker for some calls alone, and no entry of it', () => {
    const about = { model: 'gpt-x', service_tier: null, credential: null };
    expect(of({ breaker: 'open', about, lately: failing({ failing_since: null }) })).toEqual([]);
  });

  it('has no entry of its own where the refused calls have one', () => {
    const lately = failing({ rejected: { price_unknown: 9 } });
    const refusals = [refusal('price_unknown', { group: 'chat', model: 'gpt-x', count: 9 })];
    expect(of({ lately }, { refusals }).map(({ rule }) => rule)).toEqual(['price_missing']);
  });

  it.each<[string, Lately]>([
    ['it serves calls', failing({ is_failing: false, refusals: { quota: 9 } })],
    ['its last failure is minutes ago', failing({ is_failing: false, refusals: { quota: 9 } })],
    ['it had no failure', failing({ failing_since: null, is_failing: false, served: 4 })],
  ])('needs nothing if %s', (_title, lately) => {
    expect(of({ lately })).toEqual([]);
  });

  it('with an open breaker says why it is open', () => {
    const entries = of({
      breaker: 'open',
      queued: 1,
      lately: failing({ refusals: { error: 12 } }),
      upstreams: [upstream('openai', 'error', { status: 503 })],
    });
    expect(entries).toMatchObject([
      {
        rule: 'breaker_open',
        says: '`openai` fails every call: 12 × 503 (no response, or a server error) in 10 minutes. The breaker is open, and 1 call is queued.',
      },
    ]);
  });
});

describe('a group needs attention when', () => {
  const LIMIT_0 = { configured: 0, effective: 0, source: 'configured' } as const;
  const spend = (day_usd: number) => ({
    hour_usd: 0,
    day_usd,
    month_usd: day_usd,
    reserved_usd: 0,
    day_usd_by_key: {},
    day_usd_by_agent: {},
  });
  const hour = (wait_p95_ms: number[]) => ({
    last_hour: { granted: 9, rejected: {}, refusals: {}, steps: { refused: [], wait_p95_ms } },
  });

  it.each<[Attention['rule'], Partial<GroupStatus>, string, Partial<AttentionFacts>?]>([
    [
      'object_unreachable',
      { error: 'it was reset' },
      'A pool of the group does not respond: it was reset.',
    ],
    [
      'budget_spent',
      { budget_spent: { window: 'day', limit_usd: 2 }, spend: spend(2.1) },
      'The budget for this day ($2) is spent. Calls are rejected.',
    ],
    [
      'budget_spent',
      { budget_spent: { window: 'day', limit_usd: 0.002 }, spend: spend(0) },
      'The budget for this day ($0.002) has no room for the next call (nothing is spent). 1 call was rejected in the last 10 minutes.',
      { refusals: [refusal('budget_exhausted', { group: 'chat' })] },
    ],
    [
      'budget_spent',
      { budget_spent: { window: 'day', limit_usd: 0 }, spend: spend(0) },
      'The budget for this day is $0. Calls are rejected.',
    ],
    [
      'budget_spent',
      {},
      'Some calls do not fit into a budget. 4 calls were rejected in the last 10 minutes.',
      { refusals: [refusal('budget_exhausted', { group: 'chat', count: 4 })] },
    ],
    [
      'budget_near',
      { spend: spend(1.7) },
      '85 % of the budget for this day ($2) is spent.',
      { budgets: new Map([['chat', { hour: null, day: 2, month: null }]]) },
    ],
    [
      'egress_refused',
      { upstreams: [upstream('openai', 'egress')] },
      "Calls from the Worker's location are refused at `openai`: 1 refusal in the last hour.",
    ],
    [
      'quota_exhausted',
      {
        upstreams: [upstream('openai', 'quota')],
        ...hour([]),
        last_hour: { ...hour([]).last_hour, refusals: { quota: 3 } },
      },
      'The account has no quota left at `openai`: 3 refusals in the last hour.',
    ],
    [
      'day_limit_spent',
      { rates: { rpd: { limit: 100, left: 0 } }, queued: 1 },
      'The 24-hour limit (`rpd`) is used up, and 1 call is queued.',
    ],
    [
      'paused',
      { paused: true, queued: 2 },
      'An operator paused the group, and 2 calls are queued.',
    ],
    [
      'upstream_pause',
      { paused_until: inMs(120_000) },
      'The upstream asked for a backoff, which lasts another 2 minutes.',
    ],
    [
      'partly_stopped',
      {
        about: { model: 'gpt-x', service_tier: null, credential: null },
        paused_until: inMs(60_000),
      },
      'The upstream accepts no calls with model gpt-x for another 1 minute.',
    ],
    ['no_slots', { limit: LIMIT_0, queued: 1 }, 'The slot limit is 0, and 1 call is queued.'],
    [
      'slots_orphaned',
      { unclaimed: 1, unclaimed_until: inMs(20_000) },
      'The pool was restarted, and earlier calls may still hold 1 slot for at most 20 seconds.',
    ],
    [
      'slots_stuck',
      {},
      '1 lease expired in the last 10 minutes without a release.',
      { warnings: [warning('lease_expired', { leases: 1 })] },
    ],
    [
      'passed_unlimited',
      { passed_unlimited_total: 2, passed_unlimited_at: ago(9 * MINUTE) },
      'The pool was unreachable. 2 calls started without a slot, the last one in the last 10 minutes.',
    ],
    [
      'queue_old',
      { in_use: 5, queued: 3, oldest_wait_ms: 31_000 },
      '3 calls are queued, the oldest for 31 seconds.',
    ],
    [
      'queue_old',
      { queued: 1, oldest_wait_ms: 11_000, ...hour([1_000, 2_000, 1_500]) },
      '1 call is queued, the oldest for 11 seconds (usually 2 seconds).',
    ],
    [
      'queue_growing',
      { queued: 12 },
      'The queue is growing: 12 calls are queued.',
      { warnings: [warning('queue_growing', { queued_before: 4, queued: 10 })] },
    ],
    ['invariant_violated', {}, 'It is so.', { warnings: [warning('invariant_violated')] }],
  ])('%s', (rule, changes, says, facts) => {
    expect(of(changes, facts)).toMatchObject([{ rule, says, group: 'chat' }]);
  });

  it('a group is paused, and then not also without slots', () => {
    const rules = of({ paused: true, limit: LIMIT_0, queued: 1 }).map(({ rule }) => rule);
    expect(rules).toEqual(['paused']);
  });

  it('a budget is spent, and then not also nearly spent', () => {
    const budgets = new Map([['chat', { hour: null, day: 2, month: null }]]);
    const spent = { budget_spent: { window: 'day', limit_usd: 2 }, spend: spend(2.1) } as const;
    expect(of(spent, { budgets }).map(({ rule }) => rule)).toEqual(['budget_spent']);
  });

  it('a member gets no calls, unless an operator has switched it off', () => {
    const out = { reason: 'unauthorized', since: ago(MINUTE), probe_at: inMs(MINUTE) } as const;
    const member = (enabled: boolean) =>
      ({ id: 'b', enabled, out }) as NonNullable<GroupStatus['members']>[number];
    expect(of({ members: [member(true)] })).toMatchObject([
      {
        rule: 'member_ejected',
        subject: { kind: 'member', id: 'b' },
        group: 'chat',
        since: ago(MINUTE),
        says: 'Member `b` gets no calls, because its upstream refuses its key.',
      },
    ]);
    expect(of({ members: [member(false)] })).toEqual([]);
  });

  it.each<[string, Partial<GroupStatus>, Partial<AttentionFacts>?]>([
    ['is quiet', {}],
    ['is full, and no call has waited for long', { in_use: 5, queued: 9, oldest_wait_ms: 29_000 }],
    ['waits as long as usual', { queued: 1, oldest_wait_ms: 11_000, ...hour([9_000]) }],
    ['makes a pause that is over in a moment', { paused_until: inMs(2_000) }],
    [
      'let calls pass without a slot long ago',
      { passed_unlimited_total: 2, passed_unlimited_at: ago(10 * MINUTE) },
    ],
    ['waits long for something other than slots', { queued: 1, oldest_wait_ms: 31_000 }],
    [
      'has a shorter queue than at the warning',
      { queued: 3 },
      { warnings: [warning('queue_growing', { queued_before: 4, queued: 10 })] },
    ],
    [
      'has a budget of $0 that no call met',
      { spend: spend(0) },
      { budgets: new Map([['chat', { hour: null, day: 0, month: null }]]) },
    ],
    ['has a limit of 0 without a queue', { limit: LIMIT_0 }],
    [
      'was warned of long ago',
      {},
      { warnings: [{ ...warning('lease_expired'), at: ago(11 * MINUTE) }] },
    ],
    [
      'has spent half a budget',
      { spend: spend(1) },
      { budgets: new Map([['chat', { hour: null, day: 2, month: null }]]) },
    ],
  ])('not when it %s', (_title, changes, facts) => {
    expect(of(changes, facts)).toEqual([]);
  });
});

describe('refused calls', () => {
  it.each<[RefusalCount['reason'], Attention['rule'], Attention['subject']['kind']]>([
    ['price_unknown', 'price_missing', 'group'],
    ['key_missing', 'key_refused', 'upstream'],
    ['key_invalid', 'key_refused', 'upstream'],
    ['key_forbidden', 'key_refused', 'key'],
    ['model_unknown', 'model_refused', 'deployment'],
    ['model_ambiguous', 'model_refused', 'deployment'],
    ['upstream_unknown', 'calls_refused', 'deployment'],
    ['upstream_redirects', 'calls_refused', 'upstream'],
    ['setting_invalid', 'calls_refused', 'deployment'],
    ['too_many_groups', 'calls_refused', 'group'],
    ['account_capped', 'calls_refused', 'deployment'],
    ['limiter_unavailable', 'calls_refused', 'group'],
    ['limiter_overloaded', 'calls_refused', 'group'],
    ['too_many_bytes_waiting', 'calls_refused', 'deployment'],
    ['internal', 'calls_refused', 'deployment'],
  ])('for %s are %s', (reason, rule, kind) => {
    const at = { group: 'chat', key: 'team', key_kind: 'gateway', upstream: 'openai' } as const;
    expect(found({ refusals: [refusal(reason, at)] })).toMatchObject([
      { rule, reason, subject: { kind } },
    ]);
  });

  it.each<[RefusalCount, Partial<Attention>]>([
    [
      refusal('price_unknown', { group: 'team:red', model: 'gpt-x', count: 412 }),
      {
        rule: 'price_missing',
        subject: { kind: 'team', id: 'red' },
        group: 'team:red',
        says: 'Model `gpt-x` has no known price, which the budget requires. 412 calls were rejected in the last 10 minutes (`price_unknown`).',
      },
    ],
    [
      refusal('key_missing', { upstream: 'openai' }),
      {
        rule: 'key_refused',
        subject: { kind: 'upstream', id: 'openai' },
        says: 'Calls arrive without a gateway key. 1 call was rejected in the last 10 minutes (`key_missing`).',
      },
    ],
    [
      refusal('key_forbidden', { key: 'app' }),
      { rule: 'key_refused', subject: { kind: 'key', id: 'app' } },
    ],
    [
      refusal('model_unknown', { model: 'gpt-6' }),
      {
        rule: 'model_refused',
        subject: { kind: 'deployment', id: 'headgate' },
        says: 'Model `gpt-6` belongs to no upstream. 1 call was rejected in the last 10 minutes (`model_unknown`).',
      },
    ],
    [refusal('upstream_redirects', { upstream: 'local' }), { rule: 'calls_refused' }],
  ])('of an operator: %o', (one, entry) => {
    expect(found({ refusals: [one] })).toMatchObject([
      { since: ago(5 * MINUTE), count: one.count, words: 'It is so.', ...entry },
    ]);
  });

  it('are one entry for each reason and subject', () => {
    const models = ['a', 'b', 'c', 'd', 'e'].map((model) =>
      refusal('price_unknown', { group: 'chat', model }),
    );
    expect(
      found({ refusals: [...models, refusal('price_unknown', { group: 'key:k' })] }),
    ).toMatchObject([
      { subject: { kind: 'group', id: 'chat' }, count: 5 },
      { subject: { kind: 'key', id: 'k' }, count: 1 },
    ]);
    expect(found({ refusals: models })[0]?.says).toContain(
      'Models `a`, `b`, `c` and 2 more have no known price',
    );
  });

  it('by mistakes of callers are no matter for an operator', () => {
    expect(found({ refusals: [refusal('body_unreadable'), refusal('queue_timeout')] })).toEqual([]);
  });
});

it('secrets and warnings of the configuration are listed, with the calls that a secret costs', () => {
  const entries = found({
    secrets: [
      {
        subject: { kind: 'upstream', id: 'openai' },
        group: null,
        secret: 'UPSTREAM_OPENAI',
        fault: 'is not set',
        effect: 'calls to this upstream are rejected',
        advice: 'Set it.',
      },
    ],
    refusals: [refusal('secret_missing', { upstream: 'openai', count: 3 })],
    configWarnings: ['It ends in /v1/v1.'],
  });
  expect(entries).toMatchObject([
    {
      rule: 'secret_missing',
      count: 3,
      since: ago(5 * MINUTE),
      says: 'Secret `UPSTREAM_OPENAI` is not set, so calls to this upstream are rejected.',
    },
    { rule: 'config_warning', says: 'It ends in /v1/v1.' },
  ]);
});

it('a secret of the deployment has no calls of an upstream with the same name', () => {
  const secret = {
    subject: { kind: 'deployment', id: 'metrics' },
    group: null,
    secret: 'METRICS_TOKEN',
    fault: 'has white space or control characters inside',
    effect: '`/metrics` rejects this token',
    advice: 'Set it.',
  } as const;
  const refusals = [refusal('secret_missing', { upstream: 'metrics', count: 3 })];
  expect(found({ secrets: [secret], refusals })).toMatchObject([{ count: 0, since: null }]);
});

it('has the worst first, and is bounded', () => {
  const all = found({
    groups: [groupStatus({ name: 'b', paused: true }), groupStatus({ name: 'a', error: 'reset' })],
    configWarnings: Array.from({ length: ATTENTION_MAX }, (_, index) => `Warning ${index}.`),
  });
  const rules = all.map(({ rule }) => rule);
  expect(rules.slice(0, 3)).toEqual(['object_unreachable', 'paused', 'config_warning']);
  expect(rules).toEqual(
    rules.toSorted((a, b) => ATTENTION_RULES.indexOf(a) - ATTENTION_RULES.indexOf(b)),
  );
  expect(bounded(all)).toMatchObject({ left_out: 2, attention: { length: ATTENTION_MAX } });
});

import { ATTENTION_MAX, type Attention } from '../contract/attention.ts';
import { ATTENTION_RULES, type AttentionRule } from '../contract/status-words.ts';
import type { GroupStatus } from '../contract/group-status.ts';
import { REFUSAL_ADVICE, type Reason, type RefusalCount } from '../contract/reasons.ts';
import { namesWords, plural } from '../core/words/figures.ts';
import { subjectOf, brokenUpstream, notServing, type AttentionFacts } from './serving.ts';
import { GROUP_RULES, REFUSAL_RULES } from './groups.ts';

/** Returns what needs an operator's attention, the most severe first. */
export function attentionOf(facts: AttentionFacts): Attention[] {
  const refused = refusedCalls(facts.refusals);
  const all = [...ofGroups(facts, refused), ...refused, ...ofSecrets(facts), ...ofConfig(facts)];
  return all.toSorted(
    (a, b) => rankOf(a.rule) - rankOf(b.rule) || a.subject.id.localeCompare(b.subject.id),
  );
}

/** Returns the most severe entries, at most `ATTENTION_MAX`, and the number of those left out. */
export function bounded(all: readonly Attention[]): {
  readonly attention: readonly Attention[];
  readonly left_out: number;
} {
  const attention = all.slice(0, ATTENTION_MAX);
  return { attention, left_out: all.length - attention.length };
}

function rankOf(rule: AttentionRule): number {
  return ATTENTION_RULES.indexOf(rule);
}

function ofGroups(facts: AttentionFacts, refused: readonly Attention[]): Attention[] {
  const refusedHere = new Set(refused.map(({ group }) => group));
  const causes = new Map(
    facts.groups.map((group) => [
      group.name,
      brokenUpstream(group, facts) ?? notServing(group, facts, refusedHere.has(group.name)),
    ]),
  );
  const failing = new Set(
    facts.groups.flatMap(({ name, upstreams }) => {
      const isOfUpstream = subjectOf(name).kind === 'group' && causes.get(name) !== null;
      return isOfUpstream ? upstreams.map(({ id }) => id) : [];
    }),
  );
  return facts.groups.flatMap((group) => {
    const cause = isReportedElsewhere(group, failing) ? null : (causes.get(group.name) ?? null);
    const rules = cause === null ? [...REFUSAL_RULES, ...GROUP_RULES] : GROUP_RULES;
    return [...(cause === null ? [] : [cause]), ...rules.flatMap((rule) => rule(group, facts))];
  });
}

/** Whether a key or team fails only because of errors of upstreams whose groups have their own entries. */
function isReportedElsewhere(
  { name, upstreams, lately }: GroupStatus,
  failing: ReadonlySet<string>,
): boolean {
  return (
    subjectOf(name).kind !== 'group' &&
    lately?.answered_errors !== undefined &&
    upstreams.every(({ id }) => failing.has(id))
  );
}

function ofSecrets({ secrets, refusals }: AttentionFacts): Attention[] {
  return secrets.map(({ subject, group, secret, fault, effect, advice }) => {
    const ofThis = refusals.filter(
      ({ reason, upstream }) =>
        reason === 'secret_missing' && subject.kind !== 'deployment' && upstream === subject.id,
    );
    const [since = null] = ofThis.map((one) => one.first_at).toSorted();
    return {
      rule: 'secret_missing',
      subject,
      group,
      since,
      count: ofThis.reduce((sum, one) => sum + one.count, 0),
      says: `Secret \`${secret}\` ${fault}, so ${effect}.`,
      words: null,
      advice,
    };
  });
}

function ofConfig({ configWarnings }: AttentionFacts): Attention[] {
  return configWarnings.map((warning) => ({
    rule: 'config_warning',
    subject: { kind: 'deployment', id: 'configuration' },
    group: null,
    since: null,
    count: null,
    says: warning,
    words: null,
    advice: 'Correct the configuration as the warning describes.',
  }));
}

interface RefusalRule {
  readonly rule: AttentionRule;
  /** A clause without a full stop. */
  readonly cause: (all: readonly RefusalCount[]) => string;
  /** Kind of the subject of the entry. The deployment is the subject if a refusal does not name it. */
  readonly of: 'group' | 'key' | 'upstream' | 'deployment';
}

const namesOf = (all: readonly RefusalCount[], field: 'model' | 'key' | 'upstream'): string[] => [
  ...new Set(all.flatMap((one) => one[field] ?? [])),
];

/**
 * Returns a clause whose subject is the models of the calls. `one` and `many` are its predicate for one and for
 * several.
 */
function modelsOf(all: readonly RefusalCount[], one: string, many: string): string {
  const names = namesOf(all, 'model').map((name) => (name === '' ? '(none)' : `\`${name}\``));
  if (names.length === 0) return `A model ${one}`;
  return names.length === 1 ? `Model ${names[0]} ${one}` : `Models ${namesWords(names)} ${many}`;
}

/** Refusals that an operator can correct, by reason. Mistakes of clients are left out. */
const RULES: Partial<Record<Reason, RefusalRule>> = {
  price_unknown: {
    rule: 'price_missing',
    of: 'group',
    cause: (all) => `${modelsOf(all, 'has', 'have')} no known price, which the budget requires`,
  },
  key_missing: {
    rule: 'key_refused',
    of: 'upstream',
    cause: () => 'Calls arrive without a gateway key',
  },
  key_invalid: {
    rule: 'key_refused',
    of: 'upstream',
    cause: () => 'Calls use an invalid gateway key',
  },
  key_forbidden: {
    rule: 'key_refused',
    of: 'key',
    cause: () => 'A gateway key is used where it is not allowed',
  },
  model_unknown: {
    rule: 'model_refused',
    of: 'deployment',
    cause: (all) => modelsOf(all, 'belongs to no upstream', 'belong to no upstream'),
  },
  model_ambiguous: {
    rule: 'model_refused',
    of: 'deployment',
    cause: (all) => modelsOf(all, 'belongs to several upstreams', 'belong to several upstreams'),
  },
  upstream_unknown: {
    rule: 'calls_refused',
    of: 'deployment',
    cause: () => 'Calls name an upstream that is not configured',
  },
  upstream_redirects: {
    rule: 'calls_refused',
    of: 'upstream',
    cause: () => 'The upstream answers with a redirect, which Headgate does not follow',
  },
  setting_invalid: {
    rule: 'calls_refused',
    of: 'deployment',
    cause: () => 'A setting of the deployment is invalid',
  },
  too_many_groups: {
    rule: 'calls_refused',
    of: 'group',
    cause: () => 'Calls match more groups than the maximum',
  },
  account_capped: {
    rule: 'calls_refused',
    of: 'deployment',
    cause: () => 'The Cloudflare account has reached the limit of its plan',
  },
  limiter_unavailable: {
    rule: 'calls_refused',
    of: 'group',
    cause: () => 'The pool of the group was unreachable',
  },
  limiter_overloaded: {
    rule: 'calls_refused',
    of: 'group',
    cause: () => 'The pool of the group receives more calls than it can handle',
  },
  too_many_bytes_waiting: {
    rule: 'calls_refused',
    of: 'deployment',
    cause: () => 'Queued bodies fill the memory of a Worker',
  },
  internal: {
    rule: 'calls_refused',
    of: 'deployment',
    cause: () => 'Headgate failed because of a bug',
  },
};

/** Returns an entry for each reason and subject of the calls that Headgate itself rejected. */
function refusedCalls(refusals: readonly RefusalCount[]): Attention[] {
  const known = refusals.flatMap((one) => {
    const rule = RULES[one.reason];
    return rule === undefined ? [] : [{ one, rule, subject: subjectAt(rule, one) }];
  });
  const keyOf = ({ one, subject }: (typeof known)[number]): string =>
    JSON.stringify([one.reason, subject]);
  return [...Map.groupBy(known, keyOf).values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const all = same.map(({ one }) => one);
    const { rule, subject } = first;
    const count = all.reduce((sum, one) => sum + one.count, 0);
    const since = all.map((one) => one.first_at).toSorted()[0] ?? null;
    const [group = null] = all.flatMap((one) => one.group ?? []);
    return [
      {
        rule: rule.rule,
        subject,
        reason: first.one.reason,
        group,
        since,
        count,
        says: `${rule.cause(all)}. ${plural(count, 'call was', 'calls were')} rejected in the last 10 minutes (\`${first.one.reason}\`).`,
        words: first.one.message === '' ? null : first.one.message,
        advice: REFUSAL_ADVICE[first.one.reason],
      },
    ];
  });
}

function subjectAt({ of }: RefusalRule, one: RefusalCount): Attention['subject'] {
  const { group, key, upstream } = one;
  if (of === 'key' && key !== null) return { kind: 'key', id: key };
  if (of === 'upstream' && upstream !== null) return { kind: 'upstream', id: upstream };
  if (of === 'group' && group !== null) return subjectOf(group);
  return { kind: 'deployment', id: 'headgate' };
}

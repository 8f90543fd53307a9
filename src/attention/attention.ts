import { ATTENTION_MAX, type Attention } from '../contract/attention.ts';
import { ATTENTION_RULES, type AttentionRule } from '../contract/attention-rules.ts';
import type { GroupStatus } from '../contract/admin/status-schemas.ts';
import { subjectOf, type AttentionFacts } from './facts.ts';
import { GROUP_RULES, REFUSAL_RULES } from './groups.ts';
import { refusedCalls } from './refused-calls.ts';
import { brokenUpstream, notServing } from './serving.ts';

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

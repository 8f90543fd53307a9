import { below } from './field-error.ts';
import { numberIn } from './foreign-fields.ts';
import type { GroupInput } from './foreign-members.ts';
import type { PortkeyParts } from './portkey-target.ts';
import type { PortkeyNode, TargetTiers } from './portkey-tree.ts';

const RETRIES_MAX = 10;

/** Status codes after which Portkey retries by default. Headgate retries after all of them. */
const RETRIED = new Set([429, 500, 502, 503, 504]);

/** Why other status codes for a fallback cannot be converted. */
const AFTER =
  'has no counterpart; a call is retried at the next member after 429, 5xx, a broken connection, and 401, 402 and 403 for the key';

type PortkeyGroupSettings = Pick<GroupInput, 'affinity' | 'breaker' | 'retries'>;

/** Converts settings of a config other than its targets: retries, stickiness and the circuit breaker. */
export function strategySettings(
  node: PortkeyNode,
  tiers: TargetTiers,
  at: string,
  to: PortkeyParts,
): PortkeyGroupSettings {
  const leaves = tiers.flat();
  const attempts = Math.max(0, ...leaves.map((leaf) => leaf.node.retry?.attempts ?? 0));
  const codes = new Set(
    [node, ...leaves.map((leaf) => leaf.node)].flatMap(({ retry }) => retry?.on_status_codes ?? []),
  );
  if (
    codes.size > 0 &&
    (codes.size !== RETRIED.size || [...codes].some((code) => !RETRIED.has(code)))
  ) {
    const message =
      'has no counterpart; overloads, 5xx and broken connections are retried, and calls with 429 are queued';
    to.omitted.push({ path: below(at, 'retry.on_status_codes'), message });
  }
  if (node.strategy?.on_status_codes !== undefined) {
    to.omitted.push({ path: below(at, 'strategy.on_status_codes'), message: AFTER });
  }
  if (attempts > RETRIES_MAX) {
    const message = `exceeds the maximum of ${RETRIES_MAX}, which is used instead`;
    to.omitted.push({ path: below(at, 'retry.attempts'), message });
  }
  return {
    ...(attempts > 0 && { retries: { max: Math.min(RETRIES_MAX, attempts) } }),
    ...affinityOf(node, at, to),
    ...breakerOf(node, at, to),
  };
}

/** Lists the settings of a nested strategy, because a group has one setting of each kind. */
export function omitNested({ strategy }: PortkeyNode, at: string, { omitted }: PortkeyParts): void {
  const message =
    'applies to some of the targets, and a group has one setting for all of its members';
  for (const name of ['sticky', 'cb_config']) {
    if (strategy?.[name] !== undefined) {
      omitted.push({ path: below(at, `strategy.${name}`), message });
    }
  }
  if (strategy?.on_status_codes !== undefined) {
    omitted.push({ path: below(at, 'strategy.on_status_codes'), message: AFTER });
  }
}

/** Converts stickiness. Calls without it follow the weights alone, as at Portkey. */
function affinityOf({ strategy }: PortkeyNode, at: string, to: PortkeyParts): PortkeyGroupSettings {
  if (strategy?.mode !== 'loadbalance') return {};
  const sticky = objectOf(strategy['sticky'], below(at, 'strategy.sticky'), to);
  if (sticky?.['enabled'] !== true) return { affinity: { by: 'none' } };
  if (sticky['hash_fields'] !== undefined) {
    const message =
      'has no counterpart; calls of one caller, or of one agent run, stay at their member (`affinity.by`)';
    to.omitted.push({ path: below(at, 'strategy.sticky.hash_fields'), message });
  }
  const seconds = numberOf(sticky, 'ttl', below(at, 'strategy.sticky'), to) ?? 3_600;
  return {
    affinity: { by: 'agent', for: `${Math.min(86_400, Math.max(1, Math.round(seconds)))}s` },
  };
}

function breakerOf({ strategy }: PortkeyNode, at: string, to: PortkeyParts): PortkeyGroupSettings {
  const path = below(at, 'strategy.cb_config');
  const written = objectOf(strategy?.['cb_config'], path, to);
  if (written === null) return {};
  for (const name of Object.keys(written)) {
    if (name === 'failure_status_codes') {
      const message =
        'has no counterpart; overloads, other 5xx and broken connections count as failures';
      to.omitted.push({ path: `${path}.${name}`, message });
    }
  }
  const read = (name: string): number | null => numberOf(written, name, path, to);
  const share = read('failure_threshold_percentage');
  const failures = read('failure_threshold');
  const least = read('minimum_requests') ?? failures;
  const cooldown = read('cooldown_interval');
  if (failures !== null) {
    to.notes.add(
      `With ${path}.failure_threshold ${failures}, the breaker opens when a share of at least ${failures} calls failed (\`breaker.threshold\`, \`breaker.min_calls\`).`,
    );
  }
  return {
    breaker: {
      ...(share !== null && { threshold: within(share / 100, 0.01, 1) }),
      ...(least !== null && { min_calls: Math.round(within(least, 1, 100)) }),
      ...(cooldown !== null && { hold_ms: Math.round(within(cooldown, 100, 3_600_000)) }),
    },
  };
}

const within = (value: number, least: number, most: number): number =>
  Math.min(most, Math.max(least, value));

/** Returns an object. null if it is absent, or is not an object and was listed. */
function objectOf(
  value: unknown,
  path: string,
  { omitted }: PortkeyParts,
): Readonly<Record<string, unknown>> | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'object' && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>;
  }
  omitted.push({ path, message: 'expected an object' });
  return null;
}

/** Returns a number. null if it is absent, or is not a number and was listed. */
function numberOf(
  fields: Readonly<Record<string, unknown>>,
  name: string,
  at: string,
  { omitted }: PortkeyParts,
): number | null {
  const value = numberIn(fields[name]);
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (value !== undefined && value !== null) {
    omitted.push({ path: below(at, name), message: 'expected a number' });
  }
  return null;
}

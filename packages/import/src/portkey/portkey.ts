import { below, type FieldError } from '../../../../src/config/field-error.ts';
import { freeName, groupNameOf, type Converted, ForeignSecrets, numberIn } from '../groups.ts';
import { membersOf, type Deployment, type GroupInput, type MadeMembers } from '../members.ts';
import { MadeUpstreams } from '../targets.ts';
import { branchesOf, type Branch } from './conditions.ts';
import { deploymentOf, listUnread, modelOf, type PortkeyParts } from './target.ts';
import { readNode, tiersOf, type PortkeyNode, type TargetTiers } from './tree.ts';

/** Distinguishes a config of Portkey from other documents with such a field. */
export function isPortkeyConfig(document: Readonly<Record<string, unknown>>): boolean {
  const { strategy, targets, provider, virtual_key: key, override_params: params } = document;
  if (targets !== undefined || strategy !== undefined || params !== undefined) return true;
  return (typeof provider === 'string' || typeof key === 'string') && !('model' in document);
}

/**
 * Converts the targets of a config to members of a group: targets of a fallback become tiers, and weights stay weights.
 * At Portkey, each call names its config. In Headgate, calls find their group by model, so the model that the config
 * sets becomes the one that callers request.
 */
export function convertPortkey(document: unknown): Converted {
  const omitted: FieldError[] = [];
  const root = readNode(document, '', omitted);
  if (root === null) return { ok: false, errors: omitted };
  const to: PortkeyParts = { secrets: new ForeignSecrets(), notes: new Set(), omitted };
  if (root.targets !== undefined) listUnread('', root, to);
  const made = new MadeUpstreams();
  const names = new Set<string>();
  const built = branchesOf(root, omitted).flatMap((branch) => {
    const group = groupOf(branch, root, made, to);
    if (group === null) return [];
    const name = freeName(group.input.name, (each) => names.has(each));
    names.add(name);
    return [{ ...group, input: { ...group.input, name } }];
  });
  return {
    ok: true,
    config: { upstreams: made.list, groups: built.map(({ input }) => input) },
    notes: [...to.notes, ...to.secrets.notes],
    omitted,
    pathOf: (path) =>
      rollbackPath(
        path,
        built.map(({ members }) => members.paths),
      ),
  };
}

interface BuiltGroup {
  readonly input: GroupInput;
  readonly members: MadeMembers;
}

/** Returns the group of one branch. null if nothing of it is left. */
function groupOf(
  branch: Branch,
  root: PortkeyNode,
  made: MadeUpstreams,
  to: PortkeyParts,
): BuiltGroup | null {
  const { node, at } = branch;
  const tiers = tiersOf(node, at, to.omitted, (strategy, path) => {
    listUnread(path, strategy, to);
    omitNested(strategy, path, to);
  });
  const first = tiers.flat().flatMap((leaf) => modelOf(leaf.node).requested ?? [])[0];
  const requested = branch.models === null ? (first ?? []) : nameable(branch, tiers, to);
  const names = typeof requested === 'string' ? [requested] : requested;
  const members = membersOf(deploymentsOf(tiers, to), names, made);
  to.omitted.push(...members.omitted);
  for (const note of members.notes) to.notes.add(note);
  if (members.members.length === 0 || (branch.models !== null && names.length === 0)) return null;
  if (branch.isRest || (branch.models === null && names.length > 0)) {
    to.notes.add(
      `Callers must request the model \`${names[0]}\`. At Portkey, the config replaced any other model with it.`,
    );
  }
  const upstreams = [...new Set(members.members.map(({ upstream }) => upstream))];
  const input: GroupInput = {
    name: groupNameOf(branch.title ?? root.name ?? names[0] ?? 'portkey') || 'portkey',
    match: names.length > 0 ? { models: [...names] } : { upstreams },
    members: withTimeouts(members, to),
    ...strategySettings(node, tiers, at, to),
  };
  return { input, members };
}

function deploymentsOf(tiers: TargetTiers, to: PortkeyParts): Deployment[] {
  return tiers.flatMap((leaves, index) =>
    leaves.flatMap((leaf) => {
      const deployment = deploymentOf(leaf, tiers.length > 1 ? index + 1 : null, to);
      if (deployment === null) return [];
      const timeout = leaf.node.request_timeout ?? 0;
      const member = {
        ...deployment.member,
        ...weightOf(leaf.weight, tiers),
        ...(timeout < 1 ? {} : { first_token_ms: Math.min(3_600_000, Math.ceil(timeout)) }),
      };
      return [{ ...deployment, member }];
    }),
  );
}

/** Removes the time-out of a single member, because no other member could take its calls. */
function withTimeouts({ members, paths }: MadeMembers, { omitted }: PortkeyParts) {
  if (members.length > 1) return [...members];
  return members.map(({ first_token_ms: timeout, ...member }, index) => {
    if (timeout !== undefined) {
      const message =
        'takes effect only if another target can take the call. Clients have their own time-outs';
      omitted.push({ path: below(paths[index] ?? '', 'request_timeout'), message });
    }
    return member;
  });
}

/** Returns the models of a branch that members can rename. A pattern cannot be renamed. */
function nameable(
  { models, at }: Branch,
  tiers: TargetTiers,
  { omitted }: PortkeyParts,
): readonly string[] {
  const isRenamed = tiers.flat().some((leaf) => modelOf(leaf.node).model !== null);
  return (models ?? []).filter((model) => {
    if (!isRenamed || !model.includes('*')) return true;
    const message = `\`${model}\` matches several models, and a member renames single ones. Callers must request one by name`;
    omitted.push({ path: below(at, 'override_params.model'), message });
    return false;
  });
}

const WEIGHT_MIN = 0.01;

/** Converts a weight. 0 disables the member, and other weights are scaled into the bounds of a member. */
function weightOf(weight: number | null, tiers: TargetTiers) {
  if (weight === null) return {};
  if (weight === 0) return { enabled: false };
  const weights = tiers.flat().flatMap((leaf) => leaf.weight || []);
  const [least, largest] = [Math.min(...weights), Math.max(...weights)];
  const scale = Math.min(1_000 / largest, Math.max(1, WEIGHT_MIN / least));
  if (scale === 1 && weight === 1) return {};
  return { weight: Math.max(WEIGHT_MIN, Math.round(weight * scale * 10_000) / 10_000) };
}

/** Translates a path of the configuration back to the document. */
function rollbackPath(path: string, groups: readonly (readonly string[])[]): string {
  const [, group, member] = /^groups\[(\d+)\](?:\.members\[(\d+)\])?/.exec(path) ?? [];
  if (group === undefined) return path;
  const paths = groups[Number(group)] ?? [];
  return (member === undefined ? paths[0] : paths[Number(member)]) ?? below('', 'targets');
}

const RETRIES_MAX = 10;

/** Status codes after which Portkey retries by default. Headgate retries after all of them. */
const RETRIED = new Set([429, 500, 502, 503, 504]);

/** Why other status codes for a fallback cannot be converted. */
const AFTER =
  'has no counterpart; a call is retried at the next member after 429, 5xx, a broken connection, and 401, 402 and 403 for the key';

type PortkeyGroupSettings = Pick<GroupInput, 'affinity' | 'breaker' | 'retries'>;

/** Converts settings of a config other than its targets: retries, stickiness and the circuit breaker. */
function strategySettings(
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
function omitNested({ strategy }: PortkeyNode, at: string, { omitted }: PortkeyParts): void {
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

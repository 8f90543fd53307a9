import { below, type FieldError } from './field-error.ts';
import { freeName, groupNameOf, type Converted } from './foreign-groups.ts';
import {
  membersOf,
  type Deployment,
  type GroupInput,
  type MadeMembers,
} from './foreign-members.ts';
import { MadeUpstreams } from './foreign-targets.ts';
import { ForeignSecrets } from './foreign-secrets.ts';
import { branchesOf, type Branch } from './portkey-conditions.ts';
import { deploymentOf, listUnread, modelOf, type PortkeyParts } from './portkey-target.ts';
import { omitNested, strategySettings } from './portkey-settings.ts';
import { readNode, tiersOf, type PortkeyNode, type TargetTiers } from './portkey-tree.ts';

/** Fields that identify such a config. */
export const PORTKEY_FIELDS: readonly string[] = [
  'strategy',
  'targets',
  'provider',
  'virtual_key',
  'override_params',
];

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

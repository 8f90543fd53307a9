import type { GroupConfig } from '../contract/config/config.ts';
import { memberIdOf, type MemberConfig } from '../contract/config/members.ts';
import type { Upstream } from '../contract/config/upstream.ts';

/** The members of a group, and the path of a call at another upstream. */

/** A member of a group, prepared for routing. */
export interface GroupMember {
  readonly id: string;
  readonly config: MemberConfig;
  /** Names of models at the member's upstream, by the names of clients in lower case. */
  readonly models: ReadonlyMap<string, string>;
}

/** Groups never change within one version of the configuration, so the members of each are compiled once. */
const compiled = new WeakMap<GroupConfig, readonly GroupMember[]>();

/** Returns the members of a group in their order. An automatic group (null) has none. */
export function membersOf(config: GroupConfig | null): readonly GroupMember[] {
  if (config === null || !hasMembers(config)) return [];
  let members = compiled.get(config);
  if (members === undefined) {
    members = config.members.map((member) => ({
      id: memberIdOf(member),
      config: member,
      models: new Map(
        Object.entries(member.models).map(([name, there]) => [name.toLowerCase(), there]),
      ),
    }));
    compiled.set(config, members);
  }
  return members;
}

export function hasMembers({ members }: Pick<GroupConfig, 'members'>): boolean {
  return members.length > 0;
}

/** Name of the Worker secret for calls at a member. null if its upstream needs none. */
export function secretOf({ config: { secret } }: GroupMember, upstream: Upstream): string | null {
  return secret ?? upstream.secret;
}

/** Sorts members in the order in which a call takes the first free one: by tier, then by their order in the list. */
export function byTier(members: readonly GroupMember[]): GroupMember[] {
  return members.toSorted((a, b) => a.config.tier - b.config.tier);
}

/**
 * Returns a test for whether calls to an upstream, by some path or any (null), have a route at some member. Without
 * members it is always true. If no member's upstream exists any more, the group still takes the calls, so that they are
 * rejected instead of bypassing it.
 */
export function hasRouteIn(
  config: GroupConfig,
  upstreams: ReadonlyMap<string, Upstream>,
): (from: Upstream, path: string | null) => boolean {
  const ids = new Set(membersOf(config).map((member) => member.config.upstream));
  const targets = [...ids].flatMap((id) => upstreams.get(id) ?? []);
  if (targets.length === 0) return () => true;
  return (from, path) => targets.some((to) => to === from || hasSibling(from, to, path));
}

/** Model names in paths, as of Gemini, Bedrock and deployments of Azure. */
const MODEL_IN_PATH = /(?<=\/(?:models|model|deployments|engines|serving-endpoints)\/)[^/:]+/;

/**
 * Returns the path at another upstream with the same dialect that corresponds to a path of one upstream, with another
 * model name if one is given. null if the other upstream has no such routes.
 */
export function siblingPath(
  from: Upstream,
  to: Upstream,
  path: string,
  model: string | null,
): string | null {
  const moved = movedPath(from, to, path);
  if (moved === null || model === null) return moved;
  return moved.replace(MODEL_IN_PATH, () => encodeURIComponent(model));
}

/** Whether calls to one upstream, by some path or any (null), have a route at the other. */
export function hasSibling(from: Upstream, to: Upstream, path: string | null): boolean {
  if (path !== null) return movedPath(from, to, path) !== null;
  const bothOpenai = from.openaiAt !== null && to.openaiAt !== null;
  const bothAnthropic = from.anthropicAt !== null && to.anthropicAt !== null;
  return from.dialect === to.dialect || bothOpenai || bothAnthropic;
}

function movedPath(from: Upstream, to: Upstream, path: string): string | null {
  const shapes = [
    [from.openaiAt, to.openaiAt],
    [from.anthropicAt, to.anthropicAt],
  ] as const;
  // If both prefixes match, the longer one is more specific.
  const matching = shapes
    .filter(([at]) => at !== null && path.startsWith(`${at}/`))
    .toSorted(([a], [b]) => (b?.length ?? 0) - (a?.length ?? 0));
  const isOwnDialect = from.dialect === to.dialect;
  const [mapping] = matching;
  if (mapping === undefined) return isOwnDialect ? path : null;
  const [at, there] = mapping;
  if (there !== null) return there + path.slice(at?.length ?? 0);
  return null;
}

import type { GroupConfig } from '../contract/config/config.ts';
import { memberIdOf, type MemberConfig } from '../contract/config/members.ts';
import type { Upstream } from '../contract/config/upstream.ts';
import { hasSibling } from './sibling-path.ts';

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

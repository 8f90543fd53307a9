import type { ConfigInput } from '../contract/config/config.ts';
import type { FieldError } from './field-error.ts';

interface Pruned {
  readonly config: ConfigInput;
  /** Errors of removed parts, with paths in the original configuration. */
  readonly removed: readonly FieldError[];
  /** Errors of parts that cannot be removed alone. */
  readonly errors: readonly FieldError[];
  /** Translates a path in the remaining configuration to one in the original. */
  readonly pathOf: (path: string) => string;
}

/** A group, upstream or member, and its place in the original configuration. */
interface ConfigItem<Part> {
  readonly part: Part;
  readonly at: number;
}

interface PlacedGroup extends ConfigItem<NonNullable<ConfigInput['groups']>[number]> {
  /** Places of its members. */
  readonly members: readonly number[];
}

const PART = /^(groups|upstreams)\[(\d+)\](?:\.members\[(\d+)\])?/;

/**
 * Removes each part of a converted configuration that a check rejects, until it rejects nothing: a member, a group
 * without members, or an upstream. One wrong entry of a foreign document therefore affects no other.
 */
export function pruneRefused(
  config: ConfigInput,
  check: (config: ConfigInput) => readonly FieldError[],
): Pruned {
  let groups = (config.groups ?? []).map((part, at): PlacedGroup => ({
    part,
    at,
    members: (part.members ?? []).map((_member, index) => index),
  }));
  let upstreams = (config.upstreams ?? []).map(
    (part, at): ConfigItem<NonNullable<ConfigInput['upstreams']>[number]> => ({ part, at }),
  );
  const removed: FieldError[] = [];
  for (;;) {
    const left = { ...config, ...partsOf(groups, upstreams) };
    const [nowGroups, nowUpstreams] = [groups, upstreams];
    const pathOf = (path: string): string => firstPath(path, nowGroups, nowUpstreams);
    const errors = check(left);
    const blamed = new Map<string, FieldError>();
    for (const error of errors) {
      const [part] = PART.exec(error.path) ?? [];
      if (part !== undefined && !blamed.has(part)) blamed.set(part, error);
    }
    if (errors.length === 0 || blamed.size === 0) {
      return { config: left, removed, errors, pathOf };
    }
    removed.push(
      ...[...blamed.values()].map(({ path, message }) => ({ path: pathOf(path), message })),
    );
    upstreams = upstreams.filter((_upstream, index) => !blamed.has(`upstreams[${index}]`));
    groups = groups.flatMap((group, index) => withoutBlamed(group, `groups[${index}]`, blamed));
  }
}

function partsOf(
  groups: readonly PlacedGroup[],
  upstreams: readonly ConfigItem<NonNullable<ConfigInput['upstreams']>[number]>[],
) {
  return {
    upstreams: upstreams.map(({ part }) => part),
    groups: groups.map(({ part }) => part),
  };
}

/** Removes a group that is rejected, or whose last member is rejected. */
function withoutBlamed(
  { part, at, members }: PlacedGroup,
  path: string,
  blamed: ReadonlyMap<string, FieldError>,
): PlacedGroup[] {
  if (blamed.has(path)) return [];
  const stays = members.map((_member, index) => !blamed.has(`${path}.members[${index}]`));
  if (stays.every(Boolean)) return [{ part, at, members }];
  if (!stays.some(Boolean)) return [];
  const left = part.members?.filter((_member, index) => stays[index]) ?? [];
  return [{ part: { ...part, members: left }, at, members: members.filter((_, i) => stays[i]) }];
}

function firstPath(
  path: string,
  groups: readonly PlacedGroup[],
  upstreams: readonly ConfigItem<NonNullable<ConfigInput['upstreams']>[number]>[],
): string {
  return path
    .replace(/^upstreams\[(\d+)\]/, (all, index) => {
      const at = upstreams[Number(index)]?.at;
      return at === undefined ? all : `upstreams[${at}]`;
    })
    .replace(/^groups\[(\d+)\](?:\.members\[(\d+)\])?/, (all, index, member) => {
      const group = groups[Number(index)];
      if (group === undefined) return all;
      const whole = `groups[${group.at}]`;
      return member === undefined ? whole : `${whole}.members[${group.members[Number(member)]}]`;
    });
}

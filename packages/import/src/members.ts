import type { ConfigInput } from '../../../src/contract/config/config.ts';
import type { Dialect } from '../../../src/contract/http.ts';
import type { FieldError } from '../../../src/config/field-error.ts';
import {
  asOpenai,
  isBuiltInId,
  isSamePlace,
  type MadeUpstreams,
  type ModelFacts,
  type ForeignTarget,
} from './targets.ts';

export type GroupInput = NonNullable<ConfigInput['groups']>[number];
type MemberInput = NonNullable<GroupInput['members']>[number];

/** A deployment in a foreign document, where calls of one group run. */
export interface Deployment {
  /** Path in the document. */
  readonly at: string;
  readonly place: ForeignTarget;
  /** Name of the secret with its key. null if it needs none. */
  readonly secret: string | null;
  /** Model there. null means the requested one. */
  readonly model: string | null;
  /** Price and name of the model. Absent if the document has none. */
  readonly facts?: ModelFacts;
  readonly member?: Pick<MemberInput, 'enabled' | 'first_token_ms' | 'limits' | 'tier' | 'weight'>;
}

export interface MadeMembers {
  readonly members: readonly MemberInput[];
  readonly paths: readonly string[];
  readonly notes: readonly string[];
  readonly omitted: readonly FieldError[];
}

export const MEMBERS_MAX = 32;

export const TIER_MAX = 10;

/**
 * Returns the members of one group. All of them have one dialect, because bodies are not translated. Deployments with
 * several dialects are called by their OpenAI-shaped routes, and those without such routes are omitted.
 *
 * @param requested models that callers request, or empty for the models of the upstreams
 * @param kept dialect of the callers, if only that one is suitable
 */
export function membersOf(
  deployments: readonly Deployment[],
  requested: readonly string[],
  made: MadeUpstreams,
  kept: Dialect | null = null,
): MadeMembers {
  const { spoken, omitted } = inOneDialect(deployments, kept);
  const members: MemberInput[] = [];
  const paths: string[] = [];
  const notes: string[] = [];
  const used: (Deployment & { readonly id: string })[] = [];
  for (const deployment of spoken) {
    const { at, place, secret, model, facts, member = {} } = deployment;
    if (members.length === MEMBERS_MAX) {
      const message = `a group has at most ${MEMBERS_MAX} members`;
      // Deployments with several keys have one path.
      if (omitted.at(-1)?.path !== at) omitted.push({ path: at, message });
      continue;
    }
    const account = used.filter((each) => each.secret === secret);
    const there = account.filter((each) => isSamePlace(each.place, place));
    const same = there.find((each) => each.model === model);
    if (same !== undefined) {
      const message = `is the same as ${same.at}, with the same key and model, so both are one member`;
      omitted.push({ path: at, message });
      continue;
    }
    const { id } = made.add(place, facts, (other) => account.some((each) => each.id === other));
    if (there[0] !== undefined) {
      notes.push(
        `${at} has the address and key of ${there[0].at}, but another model. It became upstream \`${id}\`, because one upstream with one key is one member.`,
      );
    }
    used.push({ ...deployment, id });
    members.push({
      upstream: id,
      ...(secret === null ? {} : { secret }),
      ...renamed(requested, model),
      ...member,
      ...(member.tier === undefined ? {} : { tier: Math.min(member.tier, TIER_MAX) }),
    });
    paths.push(at);
    if ((member.tier ?? 1) > TIER_MAX) {
      const message = `has no order of its own after tier ${TIER_MAX}, the maximum`;
      omitted.push({ path: at, message });
    }
    if (place.isLocal && place.upstream !== undefined && secret === null) made.setAuth(id, 'none');
  }
  return { members, paths, notes, omitted };
}

/** Maps each name that callers use to the model of a member. */
function renamed(requested: readonly string[], model: string | null): Pick<MemberInput, 'models'> {
  if (model === null) return {};
  const names = requested.filter((name) => !name.includes('*')).flatMap(withAndWithoutId);
  const others = names.filter((name) => name !== model);
  return others.length === 0
    ? {}
    : { models: Object.fromEntries(others.map((name) => [name, model])) };
}

/** Returns the names with which a call may reach its member. Headgate removes the id of a built-in upstream. */
function withAndWithoutId(name: string): string[] {
  const slash = name.indexOf('/');
  const isRemoved = slash > 0 && isBuiltInId(name.slice(0, slash).toLowerCase());
  return isRemoved && slash < name.length - 1 ? [name, name.slice(slash + 1)] : [name];
}

function inOneDialect(
  deployments: readonly Deployment[],
  kept: Dialect | null,
): { readonly spoken: readonly Deployment[]; readonly omitted: FieldError[] } {
  const dialects = new Set(deployments.map(({ place }) => place.dialect));
  if (dialects.size < 2) return { spoken: deployments, omitted: [] };
  const omitted: FieldError[] = [];
  const spoken = deployments.flatMap((deployment) => {
    const place = inDialect(deployment.place, kept ?? 'openai');
    if (place !== null) return [{ ...deployment, place }];
    const message = `speaks ${deployment.place.dialect}, but its calls have another dialect, and Headgate does not translate bodies. Give it a group of its own`;
    omitted.push({ path: deployment.at, message });
    return [];
  });
  return { spoken, omitted };
}

/** Returns a place with the given dialect. null if it has another one only. */
export function inDialect(place: ForeignTarget, dialect: Dialect): ForeignTarget | null {
  if (dialect === 'openai') return asOpenai(place);
  return place.dialect === dialect ? place : null;
}

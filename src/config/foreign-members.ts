// Step 2, members out of the deployments of other systems. check-config.ts lists all steps.

import type { ConfigInput } from '../contract/config/config.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { FieldError } from './field-error.ts';
import { asOpenai, type MadeUpstreams, type Place } from './foreign-places.ts';

export type GroupInput = NonNullable<ConfigInput['groups']>[number];
type MemberInput = NonNullable<GroupInput['members']>[number];

/** A place of a foreign document where the calls of one group run. */
export interface Deployment {
  /** Path in the document. */
  readonly at: string;
  readonly place: Place;
  /** Name of the secret with its key. Null: it takes none. */
  readonly secret: string | null;
  /** Model there. Null: the one that the call asks for. */
  readonly model: string | null;
  /** The rest of the member, as far as the document says it. */
  readonly member?: Pick<MemberInput, 'enabled' | 'first_token_ms' | 'limits' | 'tier' | 'weight'>;
}

/** Members, and what became of the deployments. */
export interface MadeMembers {
  readonly members: readonly MemberInput[];
  /** Path in the document of each member. */
  readonly paths: readonly string[];
  readonly notes: readonly string[];
  readonly omitted: readonly FieldError[];
}

/** Maximum members of a group. */
export const MEMBERS_MAX = 32;

/** Maximum tier of a member. */
const TIER_MAX = 10;

/**
 * Makes the members of one group. All of them have one dialect, because nothing is translated: deployments of several
 * are called by their OpenAI-shaped routes, and those without such routes are omitted.
 *
 * @param asked Models by which callers name the group. Empty: they name those of the upstreams.
 * @param kept Dialect that callers speak, if only one will do.
 */
export function membersOf(
  deployments: readonly Deployment[],
  asked: readonly string[],
  made: MadeUpstreams,
  kept: Dialect | null = null,
): MadeMembers {
  const { spoken, omitted } = inOneDialect(deployments, kept);
  const members: MemberInput[] = [];
  const paths: string[] = [];
  const notes: string[] = [];
  const places = new Map<string, { readonly at: string; readonly models: Set<string> }>();
  for (const { at, place, secret, model, member = {} } of spoken) {
    if (members.length === MEMBERS_MAX) {
      omitted.push({ path: at, message: `a group has at most ${MEMBERS_MAX} members` });
      break;
    }
    const there = made.add(place);
    const key = `${there.id} ${secret ?? ''}`;
    const before = places.get(key);
    const name = model ?? '';
    if (before?.models.has(name) === true) {
      const message = `is the same place as ${before.at}, with the same key and model. It is one member`;
      omitted.push({ path: at, message });
      continue;
    }
    const own = before === undefined ? there : made.addCopy(there);
    if (own !== there) {
      notes.push(
        `${at} has the address and the key of ${before?.at}, and another model. It became the upstream "${own.id}", because one upstream with one key is one member.`,
      );
    }
    places.set(key, {
      at: before?.at ?? at,
      models: new Set([...(before?.models ?? []), name]),
    });
    members.push({
      upstream: own.id,
      ...(secret === null ? {} : { secret }),
      ...renamed(asked, model),
      ...member,
      ...(member.tier === undefined ? {} : { tier: Math.min(member.tier, TIER_MAX) }),
    });
    paths.push(at);
    if ((member.tier ?? 1) > TIER_MAX) {
      const message = `keeps no order behind tier ${TIER_MAX}, which it shares with those before it`;
      omitted.push({ path: at, message });
    }
    if (own.isLocal && secret === null) made.setAuth(own.id, 'none');
  }
  return { members, paths, notes, omitted };
}

/** Names the model of a member for each name that callers have for it. */
function renamed(asked: readonly string[], model: string | null): Pick<MemberInput, 'models'> {
  const others = asked.filter((name) => model !== null && name !== model && !name.includes('*'));
  if (model === null || others.length === 0) return {};
  return { models: Object.fromEntries(others.map((name) => [name, model])) };
}

function inOneDialect(
  deployments: readonly Deployment[],
  kept: Dialect | null,
): { readonly spoken: readonly Deployment[]; readonly omitted: FieldError[] } {
  const dialects = new Set(deployments.map(({ place }) => place.dialect));
  if (dialects.size < 2) return { spoken: deployments, omitted: [] };
  const omitted: FieldError[] = [];
  const spoken = deployments.flatMap((deployment) => {
    const place = inDialect(deployment.place, kept);
    if (place !== null) return [{ ...deployment, place }];
    const message = `speaks ${deployment.place.dialect}, and its calls are of another dialect. Nothing is translated: give it a group of its own`;
    omitted.push({ path: deployment.at, message });
    return [];
  });
  return { spoken, omitted };
}

function inDialect(place: Place, kept: Dialect | null): Place | null {
  if (kept === null || kept === 'openai') return asOpenai(place);
  return place.dialect === kept ? place : null;
}

import type * as z from 'zod';
import { agentModelListSchema, agentModelSchema } from '../schemas.ts';
import type { Dialect } from '../../../../src/contract/http.ts';
import { providerNamed } from '../../../../src/providers/catalog.ts';
import { chainsOf } from './agent-fallbacks.ts';
import { isPrivateHost } from '../../../../src/runtime/origin.ts';
import { explainIssues } from '../../../../src/config/explain-issues.ts';
import { below, ticked, type FieldError } from '../../../../src/config/field-error.ts';
import {
  withNumbers,
  groupNameOf,
  providerIdOf,
  refused,
  type Converted,
  ForeignSecrets,
} from '../groups.ts';
import {
  MEMBERS_MAX,
  membersOf,
  type Deployment,
  type GroupInput,
  type MadeMembers,
} from '../members.ts';
import {
  addressProblem,
  MadeUpstreams,
  placeAt,
  placeNamed,
  type ForeignTarget,
} from '../targets.ts';
import { quoteNoKey } from '../../../../src/config/own-config.ts';

// Lists of models of PicoClaw.

type AgentModel = z.output<typeof agentModelSchema>;

interface AgentModelEntry {
  readonly at: string;
  readonly index: number;
  readonly model: AgentModel;
}

/** Fields that are read. PicoClaw keeps using the others. */
const READ = new Set([...Object.keys(agentModelSchema.shape), '_comment']);

/** Dialects that a provider has at every address. Other providers are called with the dialect of OpenAI. */
const OWN_DIALECTS: readonly (Dialect | undefined)[] = ['gemini', 'azure', 'bedrock'];

const HOLD_MAX_MS = 86_400_000;

/** Distinguishes a list with flat entries from a list of deployments. */
export function isModelsOfAgents(document: unknown): boolean {
  const { model_list: list } = Object(document) as { readonly model_list?: unknown };
  return (
    Array.isArray(list) &&
    list.every((entry) => Object(entry).litellm_params === undefined) &&
    list.some((entry) => typeof Object(entry).model === 'string')
  );
}

/**
 * Converts such a list to groups with members: a group for each name, with a member for each of its entries and for
 * each further key. PicoClaw skips an entry without any rate left while another entry of its name has some, which is
 * what members do. Fallbacks become members of later tiers.
 */
export function convertModelsOfAgents(document: unknown): Converted {
  const parsed = agentModelListSchema.safeParse(document);
  if (!parsed.success) return refused(parsed.error, agentModelListSchema, document);
  const { model_list: list, agents, ...others } = parsed.data;
  const reading = new AgentReading();
  const entries = list.flatMap((value, index) => reading.entry(value, index));
  // The command line runs this code in Node 20, which has no Map.groupBy.
  const byName = new Map<string, AgentModelEntry[]>();
  for (const entry of entries) {
    const { model_name: name } = entry.model;
    byName.set(name, [...(byName.get(name) ?? []), entry]);
  }
  const chains = chainsOf(
    [...byName].map(([name, own]) => [name, own.flatMap(({ model }) => model.fallbacks)] as const),
    agents,
    reading.omitted,
  );
  const groups: GroupInput[] = [];
  const paths: (readonly string[])[] = [];
  for (const [title, own] of byName) {
    const built = reading.group(title, own, chains.get(title) ?? [], byName);
    if (built === null) continue;
    const same = groups.find(({ name }) => name === built.group.name);
    if (same === undefined) {
      groups.push(built.group);
      paths.push(built.paths);
      continue;
    }
    const message = `would get the group name \`${built.group.name}\`, which another entry has; rename one of them`;
    reading.omitted.push({ path: `${own[0]?.at}.model_name`, message });
  }
  for (const { at, model } of entries) {
    const inGroups = paths.filter((own) => own.includes(at)).length;
    if (!model.rpm || inGroups < 2) continue;
    const message = `applies in each of the ${inGroups} groups with this entry separately, so up to ${inGroups} times as many calls may go there`;
    reading.omitted.push({ path: `${at}.rpm`, message });
  }
  const kept = [
    ...Object.keys(others).filter((name) => name !== 'version'),
    ...(agents === undefined ? [] : ['agents']),
    ...entries.flatMap(({ model }) => Object.keys(model).filter((name) => !READ.has(name))),
  ];
  const listed = ticked([...new Set(kept)].toSorted());
  return {
    ok: true,
    config: { upstreams: reading.made.list, groups },
    notes: [
      ...reading.notes,
      ...reading.secrets.notes,
      ...(kept.length === 0
        ? []
        : [`PicoClaw keeps these settings and still uses them: ${listed}.`]),
    ],
    omitted: reading.omitted,
    pathOf: (path) => {
      const [, group, member = '0'] = /^groups\[(\d+)\](?:\.members\[(\d+)\])?/.exec(path) ?? [];
      return group === undefined ? path : (paths[Number(group)]?.[Number(member)] ?? path);
    },
  };
}

class AgentReading {
  readonly made = new MadeUpstreams();
  readonly secrets = new ForeignSecrets();
  readonly notes = new Set<string>();
  readonly omitted: FieldError[] = [];

  entry(value: unknown, index: number): AgentModelEntry[] {
    const at = `model_list[${index}]`;
    const document = withNumbers(value, ['rpm', 'request_timeout']);
    const parsed = agentModelSchema.safeParse(document);
    if (parsed.success) return [{ at, index, model: parsed.data }];
    for (const { path, message } of explainIssues(parsed.error, agentModelSchema, document)) {
      this.omitted.push({ path: below(at, path), message });
    }
    return [];
  }

  /** Returns the group of one name. null if none of its entries has an address. */
  group(
    title: string,
    own: readonly AgentModelEntry[],
    chain: readonly string[],
    byName: ReadonlyMap<string, readonly AgentModelEntry[]>,
  ): { readonly group: GroupInput; readonly paths: readonly string[] } | null {
    const tiers = [own, ...chain.map((each) => byName.get(each) ?? [])];
    const tier = tiers.length > 1 ? (index: number): number | null => index + 1 : () => null;
    const entries = tiers.flatMap((each, index) =>
      each.slice(0, MEMBERS_MAX + 1).map((entry) => ({ entry, tier: tier(index) })),
    );
    // The first entry above the maximum is omitted, and its message stands for the rest.
    const deployments = entries
      .slice(0, MEMBERS_MAX + 1)
      .flatMap((each) => this.#deployments(each.entry, each.tier));
    const spoken = own.map(({ model }) => spokenBy(providerOf(model).provider));
    const kept = spoken.every((each) => each === 'anthropic') ? 'anthropic' : null;
    const made = membersOf(deployments, [title], this.made, kept);
    this.omitted.push(...made.omitted);
    for (const note of made.notes) this.notes.add(note);
    if (made.members.length === 0) return null;
    const name = groupNameOf(title);
    if (name === '') {
      this.omitted.push({
        path: `${own[0]?.at}.model_name`,
        message: 'has no letter or digit for the name of a group; rename it',
      });
      return null;
    }
    if (name !== title) this.notes.add(`\`${title}\` became the group \`${name}\`.`);
    const members = made.members;
    const isAlone = members.length === 1;
    const [timeout] = members.map(({ first_token_ms: ms }) => ms);
    return {
      group: {
        name,
        match: { models: [title] },
        // With one member, no other member can take a late call. The call ends, as in PicoClaw.
        members: isAlone ? members.map(withoutTimeout) : [...members],
        ...(isAlone && timeout !== undefined
          ? { holds: { max_hold_ms: Math.min(HOLD_MAX_MS, timeout) } }
          : {}),
      },
      paths: made.paths,
    };
  }

  /** Returns a deployment for each key of an entry. */
  #deployments(entry: AgentModelEntry, tier: number | null): Deployment[] {
    const { at, model } = entry;
    const { provider, name } = providerOf(model);
    const place = this.#placeOf(entry, provider);
    if (place === null) return [];
    if (model.enabled === false) {
      this.notes.add(`${at} is disabled, so its member is disabled too.`);
    }
    const timeout = Math.ceil((model.request_timeout ?? 0) * 1_000);
    const member = {
      limits: { rpm: model.rpm || null },
      ...(model.enabled === false ? { enabled: false } : {}),
      ...(timeout < 1 ? {} : { first_token_ms: Math.min(3_600_000, timeout) }),
      ...(tier === null ? {} : { tier }),
    };
    return this.#secretsOf(entry, place).map((secret) => ({
      at,
      place,
      secret,
      model: name,
      member,
    }));
  }

  #placeOf({ at, model }: AgentModelEntry, provider: string): ForeignTarget | null {
    const { auth_method: method, api_base: base } = model;
    if (method === 'oauth' || method === 'token') {
      const message =
        'uses a sign-in of PicoClaw, whose tokens expire. PicoClaw still calls it directly';
      this.#omitOnce({ path: `${at}.auth_method`, message });
      return null;
    }
    if (base) {
      const problem = addressProblem(base);
      if (problem === null) {
        const isLocal = isPrivateHost(new URL(base).hostname);
        return { ...placeAt(base, spokenBy(provider)), isLocal };
      }
      this.#omitOnce({ path: `${at}.api_base`, message: problem });
      return null;
    }
    const place = placeNamed(provider, 'picoclaw');
    if (place === null) {
      const path = `${at}.${model.provider ? 'provider' : 'model'}`;
      const message = `names no provider with a known address (${quoteNoKey(provider)}); add \`api_base\``;
      this.#omitOnce({ path, message });
    }
    return place;
  }

  /** Returns the secrets of an entry's keys. Without keys, it uses that of its provider, unless it needs none. */
  #secretsOf({ at, index, model }: AgentModelEntry, place: ForeignTarget): (string | null)[] {
    const keys = [...new Set(keysOf(model))];
    if (keys.length > 0) {
      return keys.map((key, which) => {
        const of = which === 0 ? at : `${at}.api_keys[${which}]`;
        return this.secrets.ofEntry(`${at} ${key}`, model.model_name, index, of, which);
      });
    }
    if (place.upstream !== undefined && (place.isLocal || model.api_base)) return [null];
    return [this.secrets.ofOther(`place ${place.id}`, `${place.id}_API_KEY`, place.id)];
  }

  #omitOnce(error: FieldError): void {
    if (!this.omitted.some(({ path }) => path === error.path)) this.omitted.push(error);
  }
}

/** Returns the dialect of a provider. undefined means that of the host, or else that of OpenAI. */
function spokenBy(provider: string): Dialect | undefined {
  if (/-(?:messages|anthropic)$/.test(provider)) return 'anthropic';
  const { dialect } = providerNamed(providerIdOf(provider, 'picoclaw')) ?? {};
  return OWN_DIALECTS.includes(dialect) ? dialect : undefined;
}

function withoutTimeout(member: MadeMembers['members'][number]): MadeMembers['members'][number] {
  const alone = { ...member };
  delete alone.first_token_ms;
  return alone;
}

/** Returns the provider of an entry, and the name of its model there. */
function providerOf({ provider, model }: AgentModel): {
  readonly provider: string;
  readonly name: string;
} {
  if (provider) return { provider: provider.toLowerCase(), name: model };
  const slash = model.indexOf('/');
  if (slash === -1) return { provider: 'openai', name: model };
  return { provider: model.slice(0, slash).toLowerCase(), name: model.slice(slash + 1) };
}

function keysOf({ api_keys: several, api_key: one }: AgentModel): readonly string[] {
  return several.length > 0 || !one ? several.filter((key) => key !== '') : [one];
}

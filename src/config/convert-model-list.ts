// Step 2, of LiteLLM's lists of deployments. check-config.ts lists all steps.

import type * as z from 'zod';
import type { ConfigInput } from '../contract/config/config.ts';
import { modelListSchema } from '../contract/config/foreign-schemas.ts';
import type { Dialect } from '../contract/dialect.ts';
import { PROVIDERS, providerOf } from '../providers/index.ts';
import type { NamingSystem } from '../providers/provider.ts';
import { LOCAL_SERVERS } from '../providers/local-servers.ts';
import type { FieldError } from './field-error.ts';
import { groupNameOf, providerIdOf, refused, type Converted } from './foreign-groups.ts';

type Deployment = z.output<typeof modelListSchema>['model_list'][number];
type Upstream = NonNullable<ConfigInput['upstreams']>[number];
type Member = NonNullable<NonNullable<ConfigInput['groups']>[number]['members']>[number];

/** Where deployments go, and what is told of it. */
interface Places {
  /** Another system that has the list, and names providers its own way. */
  readonly system: NamingSystem | undefined;
  readonly upstreams: Map<string, Upstream>;
  readonly notes: Set<string>;
  readonly ignored: Set<string>;
}

/** Fields that say something here. */
const KNOWN = [
  'model',
  'api_base',
  'api_key',
  'max_parallel_requests',
  'rpm',
  'tpm',
  'weight',
  'order',
];

/** Turns the deployments of one name into a group with them as its members. */
export function convertModelList(document: unknown, system?: NamingSystem): Converted {
  const parsed = modelListSchema.safeParse(document);
  if (!parsed.success) return refused(parsed.error, modelListSchema, document);
  const { model_list: deployments, ...others } = parsed.data;
  const ignored = new Set(Object.keys(others));
  const places: Places = { system, upstreams: new Map(), notes: new Set(), ignored };
  const errors: FieldError[] = [];
  const groups = new Map<string, { readonly at: number[]; readonly members: Member[] }>();
  for (const [index, deployment] of deployments.entries()) {
    for (const name of Object.keys(deployment)) {
      if (name !== 'model_name' && name !== 'litellm_params') ignored.add(name);
    }
    const member = memberOf(deployment, places);
    if (member === null) {
      const path = `model_list[${index}].litellm_params.model`;
      errors.push({ path, message: 'names no provider with an address of its own; add api_base' });
      continue;
    }
    const group = groups.get(deployment.model_name) ?? { at: [], members: [] };
    group.at.push(index);
    group.members.push(member);
    groups.set(deployment.model_name, group);
  }
  const taken = new Map<string, string>();
  for (const [title, { at }] of groups) {
    const name = groupNameOf(title);
    const other = taken.get(name);
    const path = `model_list[${at[0]}].model_name`;
    if (name === '') errors.push({ path, message: 'no group name can be made of this' });
    else if (other !== undefined) {
      errors.push({ path, message: `would become the group "${name}", as "${other}" does` });
    }
    if (name !== title) places.notes.add(`"${title}" became the group "${name}".`);
    taken.set(name, title);
  }
  if (errors.length > 0) return { ok: false, errors };
  const left = [...places.ignored].toSorted();
  return {
    ok: true,
    config: {
      upstreams: [...places.upstreams.values()],
      groups: [...groups].map(([title, { members }]) => ({
        name: groupNameOf(title),
        match: { models: [title] },
        members,
      })),
    },
    notes: [...places.notes, ...(left.length === 0 ? [] : [`Not taken over: ${left.join(', ')}.`])],
    pathOf: pathBack([...groups.values()].map(({ at }) => at)),
  };
}

/** Makes a member of a deployment. Null: nobody knows where it is. */
function memberOf(
  { model_name: title, litellm_params: given }: Deployment,
  places: Places,
): Member | null {
  const slash = given.model.indexOf('/');
  const named = slash === -1 ? 'openai' : given.model.slice(0, slash).toLowerCase();
  const local = LOCAL_SERVERS.find(
    ({ namedBy }) => places.system !== undefined && namedBy[places.system]?.includes(named),
  );
  const provider = local?.id ?? providerIdOf(named, places.system);
  const model = given.model.slice(slash + 1);
  const upstream = upstreamOf(provider, given.api_base ?? local?.baseUrl, places);
  const made = upstream === null ? undefined : places.upstreams.get(upstream);
  if (local !== undefined && made !== undefined && given.api_key === undefined) made.auth = 'none';
  if (upstream === null) return null;
  for (const name of Object.keys(given)) {
    if (!KNOWN.includes(name)) places.ignored.add(`litellm_params.${name}`);
  }
  // Without a key of its own it takes the one that the provider is known for.
  const isKeyless = given.api_key === undefined && (given.api_base ?? local) !== undefined;
  const variable =
    given.api_key?.slice('os.environ/'.length) ??
    `${provider.replaceAll('-', '_').toUpperCase()}_API_KEY`;
  const secret = `UPSTREAM_${variable.replace(/^UPSTREAM_/, '')}`;
  if (!isKeyless) {
    places.notes.add(`Set the secret ${secret} to what the environment variable ${variable} held.`);
  }
  const isRenamed = title !== model && !title.includes('*');
  return {
    upstream,
    ...(isKeyless ? {} : { secret }),
    ...(isRenamed ? { models: { [title]: model } } : {}),
    limits: {
      max_concurrency: given.max_parallel_requests ?? null,
      rpm: given.rpm,
      tpm: given.tpm,
    },
    ...(given.weight === undefined ? {} : { weight: given.weight }),
    ...(given.order === undefined ? {} : { tier: given.order }),
  };
}

/** Finds the built-in upstream of a deployment, or makes one at its address. Null: it has none. */
function upstreamOf(
  provider: string,
  base: string | undefined,
  { upstreams, notes }: Places,
): string | null {
  const builtIn = PROVIDERS.find(({ id }) => id === provider);
  if (base === undefined) return typeof builtIn?.baseUrl === 'string' ? builtIn.id : null;
  const { host } = new URL(base);
  const same = providerOf({ id: '', baseUrl: base });
  if (same !== null && same.baseUrl !== null) return same.id;
  const known = [...upstreams.values()].find((each) => each.base_url === base);
  if (known !== undefined) return known.id;
  const name = host
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 28);
  const id = upstreams.has(name) ? `${name}-${upstreams.size + 1}` : name;
  const dialect: Dialect = builtIn?.dialect ?? 'openai';
  upstreams.set(id, { id, base_url: base, dialect });
  notes.add(`${base} became the upstream "${id}".`);
  return id;
}

/** Translates a path back into the list, by the places in it that each group was made of. */
function pathBack(groups: readonly (readonly number[])[]): (path: string) => string {
  const fields: Readonly<Record<string, string>> = {
    secret: 'api_key',
    tier: 'order',
    upstream: 'model',
  };
  return (path) => {
    const [, group, member = '0', field] =
      /^groups\[(\d+)\](?:\.members\[(\d+)\](?:\.(\w+))?)?/.exec(path) ?? [];
    const at = groups[Number(group)]?.[Number(member)];
    if (at === undefined) return path;
    return field === undefined
      ? `model_list[${at}]`
      : `model_list[${at}].litellm_params.${fields[field] ?? field}`;
  };
}

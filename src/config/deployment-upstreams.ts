// Step 2, where the deployments of another system are. check-config.ts lists all steps.

import type { ConfigInput } from '../contract/config/config.ts';
import { RESERVED_UPSTREAM_IDS } from '../contract/config/upstream-config.ts';
import type { Dialect } from '../contract/dialect.ts';
import { DIALECT_DEFAULTS } from '../providers/dialects.ts';
import { providerNamed, providerOf } from '../providers/index.ts';
import { LOCAL_SERVERS } from '../providers/local-servers.ts';
import type { Provider } from '../providers/provider.ts';
import type { ListedDeployment } from './listed-deployment.ts';

type Upstream = NonNullable<ConfigInput['upstreams']>[number];

/** Where the calls of a deployment go. */
interface DeploymentPlace {
  /** A built-in upstream. Null: one that is made, at `base`. */
  readonly builtIn: Provider | null;
  readonly base: string;
  readonly dialect: Dialect;
  /** The base has no path, and routes begin right below it. */
  readonly beginsAtBase: boolean;
}

/** Takes the dialect in which a deployment is called by default. */
export function dialectOfDeployment({ provider }: Pick<ListedDeployment, 'provider'>): Dialect {
  const local = LOCAL_SERVERS.find(({ id }) => id === provider);
  return local?.dialect ?? providerNamed(provider)?.dialect ?? 'openai';
}

/**
 * Finds the built-in upstream that is meant by a base URL: its host, and no path or the one where its routes begin. Any
 * other path of a known host stays, in an upstream of its own.
 */
function builtInAt(base: string, wanted: Dialect): Provider | null {
  const found = providerOf({ id: '', baseUrl: base });
  if (found === null || found.baseUrl === null) return null;
  const { host, pathname } = new URL(base);
  const { dialect = 'openai' } = found;
  if (host !== new URL(found.baseUrl).host || dialect !== wanted) return null;
  const path = pathname
    .toLowerCase()
    .replaceAll(/\/{2,}/g, '/')
    .replace(/\/$/, '');
  const defaults = DIALECT_DEFAULTS[dialect];
  const begins = [
    '',
    found.openaiAt === undefined ? defaults.openaiAt : found.openaiAt,
    found.anthropicAt ?? defaults.anthropicAt,
    ...(dialect === 'gemini' ? ['/v1beta', '/v1'] : []),
  ];
  return begins.includes(path.replace(ROUTE, '')) ? found : null;
}

/** Routes that operators leave at the end of a base URL. */
const ROUTE = /\/(?:chat\/completions|completions|embeddings|messages)$/;

function placeOf(deployment: ListedDeployment, wanted: Dialect): DeploymentPlace | null {
  const { provider, base } = deployment;
  const local = LOCAL_SERVERS.find(({ id }) => id === provider);
  const own = providerNamed(provider);
  const dialect = dialectOfDeployment(deployment);
  const address = base ?? local?.baseUrl;
  const there = address === undefined ? own : builtInAt(address, dialect);
  if (there !== null && there.baseUrl !== null) {
    const place = { builtIn: there, base: there.baseUrl, dialect, beginsAtBase: false };
    return inDialect(place, wanted);
  }
  if (address === undefined) return null;
  const url = new URL(address);
  url.pathname = url.pathname.replace(/\/+$/, '').replace(ROUTE, '');
  // Whatever stands behind it, the API of an Azure resource begins at its host.
  if (dialect === 'azure' && own?.hosts?.test(url.host) === true) {
    url.pathname = url.pathname.replace(/\/openai(?:\/.*)?$/, '');
  }
  const place = {
    builtIn: null,
    base: url.href.replace(/\/$/, ''),
    dialect,
    // A base URL as SDKs take it: a route stands right behind it, whatever it ends with.
    beginsAtBase: dialect === 'openai' && base !== undefined && url.pathname === '/',
  };
  return inDialect(place, wanted);
}

/** Takes a place in OpenAI's dialect, where its provider speaks that below another path. */
function inDialect(place: DeploymentPlace, wanted: Dialect): DeploymentPlace {
  if (wanted !== 'openai' || (place.dialect !== 'azure' && place.dialect !== 'ollama')) {
    return place;
  }
  const at = DIALECT_DEFAULTS[place.dialect].openaiAt ?? '';
  const plain = place.base.replace(/\/+$/, '');
  const base = plain.endsWith(at) ? plain : `${plain}${at}`;
  return { builtIn: null, base, dialect: 'openai', beginsAtBase: false };
}

/** An upstream that is made, or a built-in one that gets prices or aliases. */
interface DraftUpstream {
  readonly upstream: Upstream;
  readonly place: DeploymentPlace;
  /** The part in front of models that its id was made of. Null: it was made of its address. */
  readonly prefix: string | null;
  /** Secrets of its deployments in the current group, with the model of each. */
  readonly inGroup: Map<string, string>;
  isKeyed: boolean;
}

/** The upstreams of deployments, each made once. */
export class DeploymentUpstreams {
  readonly notes: string[] = [];
  readonly #made: DraftUpstream[] = [];

  /**
   * Places a deployment of a group. Two deployments of one account in a group need an upstream each.
   *
   * @returns the upstream and the name of its member, or why it cannot be placed
   */
  place(
    deployment: ListedDeployment,
    title: string,
    dialect: Dialect,
  ): { readonly upstream: string; readonly name: string | undefined } | string {
    const place = placeOf(deployment, dialect);
    if (place === null) return 'names no provider with an address of its own; add api_base';
    const { secret, model, price, baseModel } = deployment;
    const account = secret ?? '';
    const prefix = prefixOf(title);
    const isFree = (made: DraftUpstream): boolean =>
      isSamePlace(made.place, place) &&
      hasRoomFor(made.upstream, deployment) &&
      made.prefix === prefix &&
      !made.inGroup.has(account);
    const same = this.#made.find(
      (made) => isSamePlace(made.place, place) && made.inGroup.get(account) === model,
    );
    if (same !== undefined) {
      return 'is the same place as another deployment of this name, with the same key and model';
    }
    const made = this.#made.find(isFree) ?? this.#make(place, prefix);
    made.inGroup.set(account, model);
    made.isKeyed ||= !deployment.isKeyless;
    if (price !== undefined) made.upstream.prices = { ...made.upstream.prices, [model]: price };
    if (baseModel !== undefined && baseModel !== model) {
      made.upstream.aliases = { ...made.upstream.aliases, [model]: baseModel };
    }
    return { upstream: made.upstream.id, name: undefined };
  }

  /** Ends a group: accounts are told apart within each. */
  endGroup(): void {
    for (const { inGroup } of this.#made) inGroup.clear();
  }

  /** Lists the upstreams that a configuration needs. */
  list(): Upstream[] {
    return this.#made.flatMap(({ upstream, place, isKeyed }) => {
      const isPlain = upstream.prices === undefined && upstream.aliases === undefined;
      if (place.builtIn?.id === upstream.id && isPlain) return [];
      return [
        { ...upstream, ...(isKeyed || place.builtIn !== null ? {} : { auth: 'none' as const }) },
      ];
    });
  }

  #make(place: DeploymentPlace, prefix: string | null): DraftUpstream {
    const { builtIn, base, dialect, beginsAtBase } = place;
    const taken = new Set(this.#made.map(({ upstream }) => upstream.id));
    const isBuiltIn = builtIn !== null && !taken.has(builtIn.id) && prefix === null;
    const id = isBuiltIn ? builtIn.id : freeId(prefix ?? idOf(base, builtIn), taken);
    const address = base + (dialect === 'openai' ? (builtIn?.openaiAt ?? '') : '');
    const upstream: Upstream = isBuiltIn
      ? { id }
      : { id, base_url: address, dialect, ...(beginsAtBase ? { openai_at: '' } : {}) };
    if (!isBuiltIn) this.notes.push(`${address} became the upstream "${id}".`);
    const made = { upstream, place, prefix, inGroup: new Map<string, string>(), isKeyed: false };
    this.#made.push(made);
    return made;
  }
}

/** The id in front of a pattern of models, which Headgate removes if it is an upstream's. Null: none, or a built-in one. */
function prefixOf(title: string): string | null {
  const prefix = /^([a-z0-9][a-z0-9-]*)\/.*\*/.exec(title)?.[1];
  return prefix === undefined || isBuiltInId(prefix) ? null : prefix;
}

const isBuiltInId = (id: string): boolean => typeof providerNamed(id)?.baseUrl === 'string';

function isSamePlace(a: DeploymentPlace, b: DeploymentPlace): boolean {
  return a.builtIn?.id === b.builtIn?.id && a.base === b.base && a.dialect === b.dialect;
}

/** Whether the price and public name of a deployment's model fit beside those that the upstream has. */
function hasRoomFor(
  { prices = {}, aliases = {} }: Upstream,
  deployment: ListedDeployment,
): boolean {
  const { model, price, baseModel } = deployment;
  const [known, alias] = [prices[model], aliases[model]];
  return (
    (known === undefined ||
      price === undefined ||
      JSON.stringify(known) === JSON.stringify(price)) &&
    (alias === undefined || baseModel === undefined || alias === baseModel)
  );
}

function idOf(base: string, builtIn: Provider | null): string {
  if (builtIn !== null) return builtIn.id;
  const name = new URL(base).host
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 28)
    .replace(/-+$/, '');
  return RESERVED_UPSTREAM_IDS.includes(name) ? `${name}-host` : name;
}

/** Makes an id that no upstream has, built-in ones included. */
function freeId(wanted: string, taken: ReadonlySet<string>): string {
  let id = wanted;
  for (let count = 2; taken.has(id) || isBuiltInId(id); count += 1) {
    id = `${wanted.slice(0, 28).replace(/-+$/, '')}-${count}`;
  }
  return id;
}

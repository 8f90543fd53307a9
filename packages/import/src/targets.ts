import type { ConfigInput } from '../../../src/contract/config/config.ts';
import { upstreamSchema } from '../../../src/contract/config/upstream.ts';
import type { Dialect } from '../../../src/contract/http.ts';
import { DIALECT_DEFAULTS, providerNamed, providerOf } from '../../../src/providers/catalog.ts';
import { HOSTED_SERVERS, LOCAL_SERVERS, type NamedServer } from './names.ts';
import type { NamingSystem, Provider } from '../../../src/providers/provider.ts';
import { freeName, providerIdOf } from './groups.ts';

export type UpstreamInput = NonNullable<ConfigInput['upstreams']>[number];

export interface ForeignTarget {
  /** Id of the upstream: a built-in one, or that of `upstream`. */
  readonly id: string;
  readonly dialect: Dialect;
  readonly base: string;
  /** The upstream to create. Absent for a built-in one. */
  readonly upstream?: UpstreamInput;
  /** Base URL of its OpenAI-shaped routes. null if it has none. */
  readonly openaiBase: string | null;
  readonly speaksAnthropic: boolean;
  /** Whether it is a self-hosted server, which needs no key. */
  readonly isLocal: boolean;
  /** Whether callers write its id before models, so that the upstream needs this id. */
  readonly isPrefix?: true;
}

/** Price and name of a model at a place, if the document has them. */
export interface ModelFacts {
  readonly model: string;
  readonly price?: NonNullable<UpstreamInput['prices']>[string] | undefined;
  /** Its public name, if `model` is the name of a deployment. */
  readonly publicName?: string | undefined;
}

/** Ends of addresses that name a route. Some systems accept such addresses. */
const ROUTE = /\/(?:chat\/completions|completions|embeddings|responses|messages)$/i;

/** Returns why an upstream cannot have an address. null if it can. */
export function addressProblem(base: string): string | null {
  // The command line runs this code in Node 20, which has no URL.parse.
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) {
    return 'expected a URL that begins with http:// or https://';
  }
  const url = new URL(base);
  if (url.username !== '' || url.password !== '') {
    return 'contains a user name or password. Remove them, and set keys as secrets';
  }
  if (/[?#]/.test(base)) return 'contains a query or a fragment, which an upstream cannot have';
  return null;
}

/**
 * Returns the upstream at an address. A built-in one covers the addresses of its provider. Another path at a known host
 * becomes an upstream of its own.
 *
 * @param spoken dialect there, if the document states one
 */
export function placeAt(address: string, spoken?: Dialect): ForeignTarget {
  const base = withoutRoute(address);
  const provider = providerOf({ id: '', baseUrl: base });
  // A built-in upstream has one dialect, and its members are called with it.
  const isAsBuiltIn = spoken === undefined || spoken === (provider?.dialect ?? 'openai');
  const isOwn = provider !== null && isAsBuiltIn && isOwnAddress(provider, base, spoken);
  if (isOwn) return builtIn(provider);
  const dialect = spoken ?? provider?.dialect ?? 'openai';
  return made({ id: upstreamIdOf(new URL(base).host), base_url: base, dialect }, provider, false);
}

/**
 * Returns the upstream of a provider by its name in another system. null if the provider has no address of its own.
 *
 * @param system absent if the name is the id of a provider here
 */
export function placeNamed(name: string, system?: NamingSystem): ForeignTarget | null {
  const isNamed = ({ namedBy }: NamedServer): boolean =>
    system !== undefined && namedBy[system]?.includes(name.toLowerCase()) === true;
  const local = LOCAL_SERVERS.find(isNamed);
  const server = local ?? HOSTED_SERVERS.find(isNamed);
  if (server !== undefined) {
    const { id, baseUrl, dialect } = server;
    return made({ id, base_url: baseUrl, dialect }, null, local !== undefined);
  }
  const provider = providerNamed(providerIdOf(name, system));
  return provider === null || provider.baseUrl === null ? null : builtIn(provider);
}

/**
 * Returns the same place with the OpenAI dialect, for a group with others of that dialect. null without such routes.
 */
export function asOpenai(place: ForeignTarget): ForeignTarget | null {
  if (place.dialect === 'openai') return place;
  if (place.openaiBase === null) return null;
  const isOfHost = place.id === upstreamIdOf(new URL(place.base).host);
  const id = isOfHost || place.isPrefix === true ? place.id : `${place.id.slice(0, 25)}-openai`;
  return {
    ...place,
    id,
    dialect: 'openai',
    base: place.openaiBase,
    upstream: { ...place.upstream, id, base_url: place.openaiBase, dialect: 'openai' },
  };
}

/** Returns a place whose upstream has the id that callers write before models. */
export function prefixedBy(id: string, place: ForeignTarget): ForeignTarget {
  return { ...place, id, upstream: { ...ownUpstream(place), id }, isPrefix: true };
}

/** Whether two places are the same, apart from the ids of their upstreams. */
export function isSamePlace(a: ForeignTarget, b: ForeignTarget): boolean {
  const idOf = ({ id, upstream, isPrefix }: ForeignTarget): string | null =>
    upstream === undefined || isPrefix === true ? id : null;
  return a.base === b.base && a.dialect === b.dialect && idOf(a) === idOf(b);
}

/** The upstreams that an import creates: one for each address and dialect. */
export class MadeUpstreams {
  readonly #made: { readonly place: ForeignTarget; upstream: UpstreamInput }[] = [];

  /** The upstreams that the configuration needs. Built-in ones are included only with settings. */
  get list(): UpstreamInput[] {
    return this.#made.flatMap(({ upstream }) =>
      Object.keys(upstream).length > 1 ? [upstream] : [],
    );
  }

  /**
   * Adds the upstream of a place with a free id, unless it exists.
   *
   * @param facts facts of a model there. An upstream has one price for each model.
   * @param isTaken whether the existing upstream with an id must not be used
   */
  add(
    place: ForeignTarget,
    facts: ModelFacts | null = null,
    isTaken: (id: string) => boolean = () => false,
  ): ForeignTarget {
    const there = this.#made.find(
      (each) =>
        isSamePlace(each.place, place) &&
        !isTaken(each.upstream.id) &&
        (facts === null || hasRoomFor(each.upstream, facts)),
    );
    const { upstream } = there ?? this.#make(place);
    if (facts !== null) addFacts(upstream, facts);
    return { ...place, id: upstream.id };
  }

  setAuth(id: string, auth: NonNullable<UpstreamInput['auth']>): void {
    const there = this.#made.find(({ upstream }) => upstream.id === id);
    if (there !== undefined) there.upstream.auth = auth;
  }

  #make(place: ForeignTarget) {
    const isMade = (id: string): boolean => this.#made.some(({ upstream }) => upstream.id === id);
    const isBuiltIn = place.upstream === undefined && !isMade(place.id);
    const isTaken = (id: string): boolean => isMade(id) || isBuiltInId(id);
    const upstream: UpstreamInput = isBuiltIn
      ? { id: place.id }
      : { ...ownUpstream(place), id: freeName(place.id, isTaken, 32) };
    const added = { place, upstream };
    this.#made.push(added);
    return added;
  }
}

/** Whether an id belongs to an upstream that needs no configuration. */
export function isBuiltInId(id: string): boolean {
  return typeof providerNamed(id)?.baseUrl === 'string';
}

/** Returns the configured upstream of a place, also of one that a built-in upstream could serve. */
function ownUpstream({ id, base, dialect, upstream }: ForeignTarget): UpstreamInput {
  if (upstream !== undefined) return upstream;
  // For such an upstream, only the address determines where its routes begin.
  const { openaiAt } = providerNamed(id) ?? {};
  return { id, base_url: `${base}${dialect === 'openai' ? (openaiAt ?? '') : ''}`, dialect };
}

/** Whether the facts of a model do not contradict those of the upstream. */
function hasRoomFor({ prices, aliases }: UpstreamInput, facts: ModelFacts): boolean {
  const { model, price, publicName } = facts;
  const [known, alias] = [prices?.[model], aliases?.[model]];
  return (
    (known === undefined ||
      price === undefined ||
      JSON.stringify(known) === JSON.stringify(price)) &&
    (alias === undefined || publicName === undefined || alias === publicName)
  );
}

function addFacts(upstream: UpstreamInput, { model, price, publicName }: ModelFacts): void {
  if (price !== undefined) upstream.prices = { ...upstream.prices, [model]: price };
  if (publicName !== undefined && publicName !== model) {
    upstream.aliases = { ...upstream.aliases, [model]: publicName };
  }
}

export function upstreamIdOf(name: string): string {
  const id = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 28)
    .replace(/-+$/, '');
  return upstreamSchema.shape.id.safeParse(id).success ? id : `at-${id || 'host'}`.slice(0, 28);
}

function builtIn(provider: Provider): ForeignTarget {
  const { id, baseUrl, dialect = 'openai' } = provider;
  const { openaiAt, anthropicAt } = routesOf(provider);
  return {
    id,
    dialect,
    base: baseUrl ?? '',
    openaiBase: openaiAt === null ? null : `${baseUrl}${openaiAt}`,
    speaksAnthropic: anthropicAt !== null,
    isLocal: false,
  };
}

function made(
  upstream: UpstreamInput & { readonly base_url: string; readonly dialect: Dialect },
  provider: Provider | null,
  isLocal: boolean,
): ForeignTarget {
  const { id, base_url: base, dialect } = upstream;
  const openaiBase = openaiBaseOf(base, dialect, provider);
  const speaksAnthropic = dialect === 'anthropic';
  return { id, dialect, base, upstream, openaiBase, speaksAnthropic, isLocal };
}

/** Returns where the routes of a provider begin. */
function routesOf({ dialect = 'openai', openaiAt, anthropicAt }: Provider) {
  const usual = DIALECT_DEFAULTS[dialect];
  return {
    openaiAt: openaiAt === undefined ? usual.openaiAt : openaiAt,
    anthropicAt: anthropicAt ?? usual.anthropicAt,
  };
}

/** Returns the base URL of the OpenAI-shaped routes at an address with another dialect, if they are below it. */
function openaiBaseOf(base: string, dialect: Dialect, provider: Provider | null): string | null {
  if (dialect === 'openai') return base;
  const { openaiAt = DIALECT_DEFAULTS[dialect].openaiAt } = provider ?? {};
  if (openaiAt === null) return null;
  const { origin, pathname } = new URL(base);
  const path = pathname.replace(/\/+$/, '');
  return path === '' || openaiAt.startsWith(path) ? `${origin}${openaiAt}` : null;
}

/** Whether the built-in upstream of a provider serves an address. */
function isOwnAddress(provider: Provider, base: string, spoken?: Dialect): boolean {
  const { dialect } = provider;
  if (provider.baseUrl === null) return false;
  const url = new URL(base);
  if (url.host !== new URL(provider.baseUrl).host || url.protocol !== 'https:') return false;
  const path = url.pathname.toLowerCase().replace(/\/+$/, '');
  const { openaiAt, anthropicAt } = routesOf(provider);
  const isBefore = (at: string | null): boolean =>
    at === path || at?.startsWith(`${path}/`) === true;
  // The native routes of Gemini's API begin there too.
  const isVersion = dialect === 'gemini' && path === '/v1';
  return (
    path === '' || isVersion || isBefore(openaiAt) || (spoken !== 'openai' && isBefore(anthropicAt))
  );
}

function withoutRoute(address: string): string {
  const { origin, pathname } = new URL(address);
  const path = pathname.replaceAll(/\/{2,}/g, '/').replace(/\/+$/, '');
  return `${origin}${path.replace(ROUTE, '').replace(/\/+$/, '')}`;
}

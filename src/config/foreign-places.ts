// Step 2, the addresses of other systems. check-config.ts lists all steps.

import type { ConfigInput } from '../contract/config/config.ts';
import { upstreamSchema } from '../contract/config/upstream-config.ts';
import type { Dialect } from '../contract/dialect.ts';
import { DIALECT_DEFAULTS } from '../providers/dialects.ts';
import { providerNamed, providerOf } from '../providers/index.ts';
import { HOSTED_SERVERS } from '../providers/hosted-servers.ts';
import { LOCAL_SERVERS, type NamedServer } from '../providers/local-servers.ts';
import type { NamingSystem, Provider } from '../providers/provider.ts';
import { providerIdOf } from './foreign-groups.ts';

export type UpstreamInput = NonNullable<ConfigInput['upstreams']>[number];

/** Where calls of a foreign document go. */
export interface Place {
  /** Id of the upstream: a built-in one, or the one that `upstream` makes. */
  readonly id: string;
  readonly dialect: Dialect;
  /** Its address. */
  readonly base: string;
  /** The upstream to make. Absent: it is built in. */
  readonly upstream?: UpstreamInput;
  /** Where its OpenAI-shaped routes begin, as a whole address. Null: it has none. */
  readonly openaiBase: string | null;
  /** It has Anthropic-shaped routes. */
  readonly speaksAnthropic: boolean;
  /** It is a server that people run themselves, which needs no key. */
  readonly isLocal: boolean;
}

/** Ends of addresses that name a route and not a place. Some systems take both. */
const ROUTE = /\/(?:chat\/completions|completions|embeddings|responses|messages)$/i;

/** Tells what is wrong with an address that an upstream is to be made of. Null: nothing. */
export function addressProblem(base: string): string | null {
  // The command line runs this under Node 20, which has no URL.parse.
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) {
    return 'expected a URL that begins with http:// or https://';
  }
  const url = new URL(base);
  if (url.username !== '' || url.password !== '') {
    return 'has a user name or a password. Remove them: keys become secrets of their own';
  }
  if (/[?#]/.test(base)) return 'has a query or a fragment, which an upstream cannot have';
  return null;
}

/**
 * Finds the upstream at an address. A built-in one stands for its provider's own addresses; a known host at another path
 * becomes an upstream of its own, with that path.
 *
 * @param spoken Dialect that the document says is spoken there, if it says one.
 */
export function placeAt(address: string, spoken?: Dialect): Place {
  const base = withoutRoute(address);
  const provider = providerOf({ id: '', baseUrl: base });
  // A built-in upstream has one dialect, in which its members have to be called.
  const isAsBuiltIn = spoken === undefined || spoken === (provider?.dialect ?? 'openai');
  if (provider !== null && isAsBuiltIn && isOwnAddress(provider, base)) return builtIn(provider);
  const dialect = spoken ?? provider?.dialect ?? 'openai';
  return made({ id: upstreamIdOf(new URL(base).host), base_url: base, dialect }, provider, false);
}

/** Finds the upstream that another system means by the name of a provider. Null: it has no address of its own. */
export function placeNamed(name: string, system: NamingSystem): Place | null {
  const isNamed = ({ namedBy }: NamedServer): boolean =>
    namedBy[system]?.includes(name.toLowerCase()) === true;
  const local = LOCAL_SERVERS.find(isNamed);
  const server = local ?? HOSTED_SERVERS.find(isNamed);
  if (server !== undefined) {
    const { id, baseUrl, dialect } = server;
    return made({ id, base_url: baseUrl, dialect }, null, local !== undefined);
  }
  const provider = providerNamed(providerIdOf(name, system));
  return provider === null || provider.baseUrl === null ? null : builtIn(provider);
}

/** Makes the same place in the OpenAI dialect, for a group that others of that dialect are in. Null: it has no such routes. */
export function asOpenai(place: Place): Place | null {
  if (place.dialect === 'openai') return place;
  if (place.openaiBase === null) return null;
  const id = `${place.id.slice(0, 25)}-openai`;
  return {
    ...place,
    id,
    dialect: 'openai',
    base: place.openaiBase,
    upstream: { ...place.upstream, id, base_url: place.openaiBase, dialect: 'openai' },
  };
}

/** The upstreams that an import makes: one for each address and dialect. */
export class MadeUpstreams {
  readonly #made = new Map<string, UpstreamInput>();

  get list(): UpstreamInput[] {
    return [...this.#made.values()];
  }

  /** Adds the upstream of a place, unless it is there already, under an id that no other has. */
  add(place: Place): Place {
    const { upstream } = place;
    if (upstream === undefined) return place;
    const same = this.list.find(
      ({ base_url: base, dialect }) => base === upstream.base_url && dialect === upstream.dialect,
    );
    return same === undefined ? this.#put(place, upstream) : { ...place, id: same.id };
  }

  /** Adds a place once more under an id of its own: two deployments of one account are two upstreams. */
  addCopy(place: Place): Place {
    const { id, dialect, base } = place;
    return this.#put(place, { ...this.#made.get(id), id, base_url: base, dialect });
  }

  /** Sets what an upstream is called with, a built-in one too. */
  setAuth(id: string, auth: NonNullable<UpstreamInput['auth']>): void {
    this.#made.set(id, { ...(this.#made.get(id) ?? { id }), auth });
  }

  #put(place: Place, upstream: UpstreamInput): Place {
    const isTaken = (id: string): boolean => this.#made.has(id) || providerNamed(id) !== null;
    let id = place.id;
    for (let number = 2; isTaken(id); number += 1) id = `${place.id.slice(0, 28)}-${number}`;
    this.#made.set(id, { ...upstream, id });
    return { ...place, id, upstream: { ...upstream, id } };
  }
}

/** Makes the id of an upstream of any name. */
export function upstreamIdOf(name: string): string {
  const id = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 28)
    .replace(/-+$/, '');
  return upstreamSchema.shape.id.safeParse(id).success ? id : `at-${id || 'host'}`.slice(0, 28);
}

function builtIn(provider: Provider): Place {
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
): Place {
  const { id, base_url: base, dialect } = upstream;
  const openaiBase = openaiBaseOf(base, dialect, provider);
  const speaksAnthropic = dialect === 'anthropic';
  return { id, dialect, base, upstream, openaiBase, speaksAnthropic, isLocal };
}

/** Finds where the routes of a provider begin. */
function routesOf({ dialect = 'openai', openaiAt, anthropicAt }: Provider) {
  const usual = DIALECT_DEFAULTS[dialect];
  return {
    openaiAt: openaiAt === undefined ? usual.openaiAt : openaiAt,
    anthropicAt: anthropicAt ?? usual.anthropicAt,
  };
}

/** Finds where the OpenAI-shaped routes of an address of another dialect begin, if they lie below it. */
function openaiBaseOf(base: string, dialect: Dialect, provider: Provider | null): string | null {
  if (dialect === 'openai') return base;
  const { openaiAt = DIALECT_DEFAULTS[dialect].openaiAt } = provider ?? {};
  if (openaiAt === null) return null;
  const { origin, pathname } = new URL(base);
  const path = pathname.replace(/\/+$/, '');
  return path === '' || openaiAt.startsWith(path) ? `${origin}${openaiAt}` : null;
}

/** Whether the built-in upstream of a provider serves an address. */
function isOwnAddress(provider: Provider, base: string): boolean {
  if (provider.baseUrl === null) return false;
  const url = new URL(base);
  if (url.host !== new URL(provider.baseUrl).host || url.protocol !== 'https:') return false;
  const path = url.pathname.toLowerCase().replace(/\/+$/, '');
  const { openaiAt, anthropicAt } = routesOf(provider);
  const isBefore = (at: string | null): boolean =>
    at === path || at?.startsWith(`${path}/`) === true;
  return path === '' || isBefore(openaiAt) || isBefore(anthropicAt);
}

function withoutRoute(address: string): string {
  const { origin, pathname } = new URL(address);
  const path = pathname.replaceAll(/\/{2,}/g, '/').replace(/\/+$/, '');
  return `${origin}${path.replace(ROUTE, '').replace(/\/+$/, '')}`;
}

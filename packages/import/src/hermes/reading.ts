import type * as z from 'zod';
import { hermesEndpointSchema, hermesMainSchema, type hermesPartsSchema } from './schema.ts';
import { explainIssues } from '../../../../src/config/explain-issues.ts';
import { below, formatPath, ticked, type FieldError } from '../../../../src/config/field-error.ts';
import { readWithoutWrong, withNumbers, ForeignSecrets } from '../groups.ts';
import type { ForeignTarget } from '../targets.ts';
import {
  baseOfPool,
  secretsOfPool,
  HermesPlaces,
  namedEndpoints,
  usualNames,
  type Endpoint,
  type HermesEndpoint,
} from './endpoints.ts';

type Hermes = z.output<typeof hermesPartsSchema>;

/** Wait at the main provider after which a call spills to a fallback: about as long as Hermes retries. */
export const FALLBACK_AFTER_MS = 60_000;

/** Maximum time between two starts of a group. */
const DELAY_MAX_S = 100;

const SPILLS_MAX = 8;

/** Fields that are read. Hermes keeps using the others. */
const READ = new Set([
  'model',
  'custom_providers',
  'providers',
  'fallback_providers',
  'fallback_model',
  'credential_pool',
  'credential_pool_strategies',
  '_config_version',
  'version',
]);

/** An upstream that Hermes calls, with its settings in the document. */
export interface Used {
  readonly place: ForeignTarget;
  /** Path in the document. */
  readonly at: string;
  /** Path of the named endpoint. null if there is none. */
  readonly entryAt: string | null;
  /** Secrets of its keys in order. Empty if Hermes sends its key itself, or if none is needed. */
  readonly secrets: readonly string[];
  readonly isInTurn: boolean;
  /** Concurrent calls for each key, or null. */
  readonly slots: number | null;
  readonly startsPerS: number | null;
  readonly models: readonly (readonly [model: string, slots: number])[];
}

export interface Spill {
  readonly upstream: string;
  readonly model: string | null;
}

export class HermesReading {
  readonly places: HermesPlaces;
  readonly secrets = new ForeignSecrets();
  readonly notes = new Set<string>();
  readonly #addressed = new Set<string>();
  readonly #document: Hermes;
  readonly #omitted: FieldError[];
  readonly #named: readonly HermesEndpoint[];

  constructor(document: Hermes, omitted: FieldError[]) {
    this.#document = document;
    this.#omitted = omitted;
    const { custom_providers: list, providers: byName } = document;
    this.#named = namedEndpoints(list ?? [], byName ?? {}, omitted);
    this.places = new HermesPlaces(this.#named, omitted);
  }

  /** Returns all notes: what was converted, what must be set, and what Hermes keeps. */
  allNotes(): string[] {
    const kept = Object.keys(this.#document).filter((name) => !READ.has(name));
    const list = ticked(kept.toSorted());
    return [
      ...this.notes,
      ...this.secrets.notes,
      ...(kept.length === 0 ? [] : [`Hermes keeps these settings and still uses them: ${list}.`]),
    ];
  }

  main(): Used | null {
    const { model } = this.#document;
    if (model === undefined || model === null) return null;
    const document =
      typeof model === 'string' ? { model } : withNumbers(usualNames(model), ['max_concurrent']);
    const main = readWithoutWrong(hermesMainSchema, document, 'model', this.#omitted, ([field]) =>
      field === 'max_concurrent' || field === 'model' ? [field] : null,
    );
    return main === null ? null : this.#used(main, 'model', main);
  }

  named(): Used[] {
    return this.#named.flatMap(({ at, entry }) => {
      // Without an address, it only changes how Hermes calls a provider.
      const isOwn = Boolean(entry.base_url);
      const isLimited = entry.max_concurrent || entry.models || entry.rate_limit_delay;
      if (!isOwn && !isLimited) return [];
      return this.#used(entry, at, entry) ?? [];
    });
  }

  /** Returns the providers that have a pool of keys only. */
  pools(): Used[] {
    return Object.entries(this.#document.credential_pool ?? {}).flatMap(([provider, keys]) => {
      const at = formatPath(['credential_pool', provider]);
      const base = this.places.entryOf(provider) === undefined ? baseOfPool(provider, keys) : null;
      return this.#used({ provider, base_url: base }, at, {}) ?? [];
    });
  }

  /** Returns the used upstreams. Omitted fallbacks may have created others. */
  upstreams(used: readonly string[], spills: readonly Spill[]) {
    const ids = new Set([...used, ...spills.map(({ upstream }) => upstream)]);
    return this.places.made.list.filter(({ id }) => ids.has(id));
  }

  fallbacks(main: Used | null): Spill[] {
    const { fallback_providers: several, fallback_model: one } = this.#document;
    const [field, list] = several?.length
      ? (['fallback_providers', several] as const)
      : (['fallback_model', Array.isArray(one) ? one : one ? [one] : []] as const);
    if (main === null) {
      const message =
        'is a fallback of the main model, which is not imported. Hermes still falls back to it directly';
      if (list.length > 0) this.#omitted.push({ path: field, message });
      return [];
    }
    const spills = list.flatMap((value: unknown, index): Spill[] => {
      const at = field === 'fallback_model' && !Array.isArray(one) ? field : `${field}[${index}]`;
      const endpoint = this.#endpoint(usualNames(value), at);
      if (endpoint === null) return [];
      if (!endpoint.model || !(endpoint.provider || endpoint.base_url)) {
        this.#omitted.push({
          path: at,
          message: 'requires provider and model; Hermes ignores it without them',
        });
        return [];
      }
      const used = this.#used(endpoint, at, {});
      if (used === null) return [];
      const why =
        index < SPILLS_MAX
          ? whyNoSpill(main, used)
          : `a group spills to at most ${SPILLS_MAX} upstreams`;
      if (why !== null) {
        this.#omitted.push({
          path: at,
          message: `${why}. Hermes can still fall back to it directly`,
        });
        return [];
      }
      this.setAuth(used.place, used.secrets);
      this.noteAddress(used);
      return [{ upstream: used.place.id, model: endpoint.model }];
    });
    if (spills.length > 0) {
      this.notes.add(
        `A call that is queued for ${FALLBACK_AFTER_MS / 1_000} s at \`${main.place.id}\`, or refused there, spills to ${ticked(spills.map(({ upstream }) => upstream))} (\`on_saturated\`). Hermes falls back after its own retries.`,
      );
    }
    return spills;
  }

  setAuth({ id, isLocal }: ForeignTarget, [secret]: readonly string[]): void {
    if (secret !== undefined) this.places.made.setAuth(id, { secret });
    else if (isLocal) this.places.made.setAuth(id, 'none');
  }

  #endpoint(document: unknown, at: string): Endpoint | null {
    const value = typeof document === 'string' ? { provider: document } : document;
    const parsed = hermesEndpointSchema.safeParse(value);
    if (parsed.success) return parsed.data;
    const errors = explainIssues(parsed.error, hermesEndpointSchema, value);
    this.#omitted.push(...errors.map(({ path, message }) => ({ path: below(at, path), message })));
    return null;
  }

  #used(
    endpoint: Endpoint,
    at: string,
    own: { readonly max_concurrent?: number | null | undefined },
  ): Used | null {
    const place = this.places.placeOf(endpoint, at);
    if (place === null) return null;
    const named = this.places.entryOf(endpoint.provider);
    const pools = this.#document.credential_pool ?? {};
    const pool = secretsOfPool(pools, { endpoint, named, place }, this.secrets, (error) =>
      this.#omitOnce(error),
    );
    const secrets = pool.length > 0 ? pool : this.#keyOf(endpoint, named, place, at);
    const isAtName =
      named !== undefined && (!endpoint.base_url || endpoint.base_url === named.entry.base_url);
    const entry = isAtName ? named.entry : undefined;
    const strategy = this.#strategyOf(endpoint.provider);
    return {
      place,
      at,
      entryAt: named?.at ?? null,
      secrets,
      isInTurn: strategy !== undefined && strategy !== 'fill_first',
      slots: own.max_concurrent ?? entry?.max_concurrent ?? null,
      startsPerS: this.#startsPerS(entry?.rate_limit_delay ?? 0, named?.at ?? at),
      models: modelSlots(entry?.models),
    };
  }

  /** Adds a note with the new base URL for Hermes, once for each upstream. */
  noteAddress({ place, at, entryAt, secrets }: Used): void {
    const { id, dialect, base, openaiBase } = place;
    if (this.#addressed.has(id)) return;
    this.#addressed.add(id);
    const rest = dialect === 'anthropic' ? '' : (openaiBase ?? base).slice(base.length);
    const url = `https://<your Headgate>/${id}${rest}`;
    const key = secrets.length > 0 ? ', and its key to a gateway key' : '';
    this.notes.add(`In Hermes, set \`base_url\` of ${entryAt ?? at} to ${url}${key}.`);
  }

  #startsPerS(delayS: number, at: string): number | null {
    if (delayS === 0) return null;
    if (delayS > DELAY_MAX_S) {
      const message = `exceeds the maximum of ${DELAY_MAX_S} s, which is used instead`;
      this.#omitOnce({ path: `${at}.rate_limit_delay`, message });
    }
    return Math.min(100_000, 1 / Math.min(DELAY_MAX_S, delayS));
  }

  /** Returns the secret of the single key of an endpoint. */
  #keyOf(
    endpoint: Endpoint,
    named: HermesEndpoint | undefined,
    place: ForeignTarget,
    at: string,
  ): string[] {
    const own = [endpoint, named?.entry].find((each) => each?.api_key || each?.key_env);
    if (own?.key_env) return [this.secrets.ofVariable(own.key_env)];
    if (own?.api_key) return [this.secrets.ofKey(own.api_key, place.id, `${at}.api_key`)];
    const command = endpoint['key_cmd'] ?? named?.entry['key_cmd'];
    if (command !== undefined) {
      const message =
        'returns keys that expire, and a secret is permanent. Hermes still sends them itself';
      this.#omitOnce({ path: `${named?.at ?? at}.key_cmd`, message });
      return [];
    }
    if (place.isLocal) return [];
    return [this.secrets.ofOther(`place ${place.id}`, `${place.id}_API_KEY`, place.id)];
  }

  /** Lists an omitted part once, although it is read for each endpoint that uses it. */
  #omitOnce(error: FieldError): void {
    if (!this.#omitted.some(({ path }) => path === error.path)) this.#omitted.push(error);
  }

  #strategyOf(provider: string | null | undefined): string | undefined {
    const strategies = Object.entries(this.#document.credential_pool_strategies ?? {});
    return strategies.find(([name]) => name.toLowerCase() === provider?.toLowerCase())?.[1];
  }
}

function modelSlots(models: HermesEndpoint['entry']['models']): Used['models'] {
  if (!models || Array.isArray(models)) return [];
  return Object.entries(models).flatMap(([model, entry]) =>
    entry?.max_concurrent ? [[model, entry.max_concurrent] as const] : [],
  );
}

/** Returns why calls of an upstream cannot spill to another one. null if they can. */
function whyNoSpill(from: Used, to: Used): string | null {
  const { dialect, openaiBase } = from.place;
  const hasMembers = from.secrets.length > 1;
  if (from.place.id === to.place.id && hasMembers) {
    return 'is at the same provider as the main model, whose keys are members of one group';
  }
  const isSpoken =
    dialect === 'anthropic'
      ? to.place.speaksAnthropic
      : openaiBase !== null && to.place.openaiBase !== null;
  if (to.place.dialect !== dialect && (hasMembers || !isSpoken)) {
    return `speaks ${to.place.dialect}, but the main model speaks ${dialect}, and Headgate does not translate bodies`;
  }
  if (to.secrets.length === 0 && !to.place.isLocal) {
    return 'has no permanent key, which spilled calls require';
  }
  return null;
}

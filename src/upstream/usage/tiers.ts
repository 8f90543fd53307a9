import { textOf } from '../json/json-string.ts';
import type { ValueKind, WalkedValue } from '../json/json-syntax.ts';

/**
 * Service tiers, which change the price of a call in addition to its model. Providers accept them in a few fields and
 * report in the response which tier served the call.
 */

/** The fields that choose the tier of a call, by our names. */
export type TierField = 'service_tier' | 'speed' | 'latency';

export const TIER_FIELDS: readonly TierField[] = ['service_tier', 'speed', 'latency'];

/** The tiers that a call requests, or that its response reports, in lower case. */
export type ServiceTiers = Readonly<Partial<Record<TierField, string>>>;

export interface RequestedTiers {
  readonly asked: ServiceTiers;
  /** The names of these fields in the call. */
  readonly names: ServiceTiers;
  /** The first field that could not be read. `why` continues "The field … could not be read: it". */
  readonly odd: { readonly field: string; readonly why: string } | null;
  /** Whether the body was not read, so that it may request any tier. */
  readonly isUnread: boolean;
}

export const NO_TIERS: RequestedTiers = { asked: {}, names: {}, odd: null, isUnread: false };
export const UNREAD_TIERS: RequestedTiers = { ...NO_TIERS, isUnread: true };

const TIER_BYTES_MAX = 64;

/** Longest escaped form of the longest key, so that escapes cannot hide a key. */
export const TIER_KEY_BYTES = 128;

/** Objects at the top of a body whose fields count as fields of the body. */
const WRAPPERS = ['response', 'generationConfig', 'generation_config', 'extra_body'];

const SERVICE_TIERS = ['service_tier', 'serviceTier'];
const PERFORMANCE = 'performanceConfig';

/** Keys that a walk must distinguish to read the requested tiers. */
export const ASKED_TIER_KEYS = [...WRAPPERS, ...SERVICE_TIERS, PERFORMANCE];

const wrappers = new Set(WRAPPERS);
const serviceTiers = new Set(SERVICE_TIERS);

const BACKSLASH = 0x5c;
const LOWER_CASE = 0x20;
const LETTER_N = 0x6e;
/** The first letters of service_tier and speed, of performanceConfig, and of type and latency inside these. */
const FIRST_LETTERS: ReadonlySet<number> = new Set(
  ['s', 'p', 't', 'l'].map((letter) => letter.charCodeAt(0)),
);

/** Reads the tiers that a body requests, in all dialects, as strictly as a model is read. */
export class TierReader {
  readonly #requested: Partial<Record<TierField, string>> = {};
  readonly #names: Partial<Record<TierField, string>> = {};
  #odd: RequestedTiers['odd'] = null;
  /** The field whose value comes next, and its name in the body. */
  #next: { readonly field: TierField; readonly name: string } | null = null;

  /** Called with a key whose value has not begun. */
  key(value: WalkedValue): void {
    this.#next = null;
    const { depth, keyBytes } = value;
    if (depth > 2 || keyBytes === null || isPlainOther(keyBytes)) return;
    const key = textOf(keyBytes);
    if (key === null) return;
    const folded = fold(key);
    const parent = depth === 1 ? null : value.key(1);
    const name = parent === null ? key : `${parent}.${key}`;
    if (parent !== null && !wrappers.has(parent)) this.#keyWithin(parent, folded, name);
    else if (folded === 'speed') this.#next = { field: 'speed', name };
    else if (folded === 'servicetier') {
      if (serviceTiers.has(key)) this.#next = { field: 'service_tier', name };
      else this.#note(name, 'is spelled differently');
    } else if (folded === 'performanceconfig' && key !== PERFORMANCE) {
      this.#note(name, 'is spelled differently');
    }
  }

  #keyWithin(parent: string, folded: string, name: string): void {
    if (serviceTiers.has(parent) && folded === 'type') this.#next = { field: 'service_tier', name };
    if (parent === PERFORMANCE && folded === 'latency') this.#next = { field: 'latency', name };
  }

  /** Called at the start of a value. Returns true if its bytes are needed, which are then passed to `end`. */
  begin({ firstByte }: WalkedValue, kind: ValueKind): boolean {
    const next = this.#next;
    if (next === null) return false;
    if (kind === 'string') return true;
    this.#next = null;
    // Bedrock's tier is an object whose type is read. The speed of speech is a number.
    const isOther = firstByte === LETTER_N || next.field === 'speed' || kind === 'object';
    if (!isOther) this.#note(next.name, 'is not a string');
    return false;
  }

  /** Called with the raw text of the value. Returns false if it belongs to another field. */
  end({ kept, start, end }: WalkedValue): boolean {
    const next = this.#next;
    if (next === null) return false;
    this.#next = null;
    const { field, name } = next;
    const isCut = end - start - 2 > Math.min(kept.length, TIER_BYTES_MAX);
    const tier = isCut ? null : textOf(kept);
    if (tier === null) this.#note(name, 'is too long or not a valid string');
    else if (this.#requested[field] !== undefined) this.#note(name, 'occurs twice');
    else {
      this.#requested[field] = tier.toLowerCase();
      this.#names[field] = name;
    }
    return true;
  }

  read(): RequestedTiers {
    return { asked: this.#requested, names: this.#names, odd: this.#odd, isUnread: false };
  }

  #note(field: string, why: string): void {
    this.#odd ??= { field: field.slice(0, 100), why };
  }
}

/** Lower-casing alone would keep the long s, which some parsers read as an s. */
function fold(key: string): string {
  return key.toUpperCase().toLowerCase().replaceAll(/[_-]/g, '');
}

/** Whether a key is plain ASCII and starts unlike all of the fields. Most keys do, and need no decoding. */
function isPlainOther(key: Uint8Array): boolean {
  if (FIRST_LETTERS.has((key[0] ?? 0) | LOWER_CASE)) return false;
  return key.every((byte) => byte < 0x7f && byte !== BACKSLASH);
}

/** Keys that a walk must distinguish to read the reported tiers. */
export const REPORTED_TIER_KEYS = [...SERVICE_TIERS, PERFORMANCE, 'type', 'latency'];

/**
 * The field that a string in a response reports, or null. `isOwn` is whether its object belongs to the response itself.
 */
export function reportedField(value: WalkedValue, isOwn: boolean): TierField | null {
  const key = value.key(value.depth);
  if (isOwn && serviceTiers.has(key)) return 'service_tier';
  if (value.depth !== 2) return null;
  if (key === 'type' && value.key(1) === 'serviceTier') return 'service_tier';
  return key === 'latency' && value.key(1) === PERFORMANCE ? 'latency' : null;
}

/** Reads the tiers from an object with the usage, as Anthropic and Gemini report them. */
export function tiersInUsage(usage: unknown): ServiceTiers {
  if (typeof usage !== 'object' || usage === null) return {};
  const fields = usage as Readonly<Record<string, unknown>>;
  return {
    ...reportedTier('service_tier', trafficTier(fields['trafficType'])),
    ...reportedTier('service_tier', fields['serviceTier']),
    ...reportedTier('service_tier', fields['service_tier']),
    ...reportedTier('speed', fields['speed']),
  };
}

/** Converts a tier that a response reports. `auto` only repeats the request. */
export function reportedTier(field: TierField, value: unknown): ServiceTiers {
  if (typeof value !== 'string' || value === '') return {};
  const tier = value.toLowerCase();
  return tier === 'auto' ? {} : { [field]: tier };
}

/** Vertex reports `ON_DEMAND`, `ON_DEMAND_PRIORITY`, `ON_DEMAND_FLEX` or `PROVISIONED_THROUGHPUT`. */
function trafficTier(traffic: unknown): string | null {
  if (typeof traffic !== 'string' || traffic === 'TRAFFIC_TYPE_UNSPECIFIED') return null;
  return /^ON_DEMAND_(PRIORITY|FLEX)$/.exec(traffic)?.[1] ?? 'standard';
}
